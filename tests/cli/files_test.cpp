// Files that are not what they seem: pipes, links, disks that fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/cli/program.h"
#include "tests/support/checksums.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string train = "train --net tiny.prototxt --lr 0.01 --batch 4 --data ";
// A program that waits for a pipe is killed, which is no refusal.
const std::string in_time = "timeout -s KILL 30";

void make_pipe(const fs::path& path) {
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
}

TEST(Files, APipeInTheirPlaceIsRefusedAtOnce) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("list.csv", "path,label\nimages/train/red/1.ppm,0\nimages/train/blue/1.ppm,1\n");
  make_pipe(desk / "pipe");
  for (const std::string& arguments :
       {train + "images --class-weights pipe", train + "images --topology pipe --devices cpu:2",
        train + "images --solver pipe", train + "list.csv --data-option classes=pipe",
        std::string("net pipe"),
        std::string("plan --net tiny.prototxt --devices sim:2 --costs pipe")}) {
    EXPECT_THAT(desk.refusal(arguments, in_time),
                AllOf(HasSubstr("pipe"), HasSubstr("it is not a regular file")))
        << arguments;
  }
}

TEST(Files, APipeInARunFolderIsRefusedAtOnce) {
  const Desk desk;
  ASSERT_EQ(desk.tandem(train + "synthetic --steps 3 --out run").code, 0);
  for (const std::string name : {"run.json", "net.prototxt", "solver.prototxt", "last.safetensors",
                                 "last.state.safetensors", "metrics.csv", "log.txt", "plan.txt"}) {
    fs::remove_all(desk / "copy");
    fs::copy(desk / "run", desk / "copy");
    make_pipe(desk / ("copy/" + name));
    EXPECT_THAT(desk.refusal("train --resume --out copy --steps 6", in_time), HasSubstr(name));
  }
}

TEST(Files, APlantedLinkIsNotFollowed) {
  const Desk desk;
  ASSERT_EQ(desk.tandem(train + "synthetic --steps 3 --out run").code, 0);
  desk.write("victim", "precious");
  for (const char* name : {"last.safetensors.new", "last.state.safetensors.new", "plan.txt.new",
                           "run.json.new", "metrics.csv.new"}) {
    fs::create_symlink(desk / "victim", desk / ("run/" + std::string(name)));
  }
  const Outcome outcome = desk.tandem("train --resume --out run --steps 6");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(desk.read("victim"), "precious");
  EXPECT_FALSE(fs::is_symlink(desk / "run/last.safetensors"));
  fs::remove(desk / "run/log.txt");
  fs::create_symlink(desk / "victim", desk / "run/log.txt");
  EXPECT_THAT(desk.refusal("train --resume --out run --steps 9"), HasSubstr("run/log.txt"));
  EXPECT_EQ(desk.read("victim"), "precious");
}

TEST(Files, DamagedWeightsAreRefusedEverywhere) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(train + "images --steps 3 --out run").code, 0);
  const std::vector<std::string> uses{
      "predict --run run --weights last images/val/red/1.ppm", "test --run run --weights last",
      "export --run run --weights last out.caffemodel", "train --resume --out run --steps 6",
      train + "images --steps 1 --out other --weights run/last.safetensors"};
  const std::string good = desk.read("run/last.safetensors");
  std::string bad = good;
  for (size_t i = 1; i <= 100; ++i) bad[bad.size() - i] ^= 0x40;
  desk.write("run/last.safetensors", bad);
  for (const std::string& use : uses) {
    EXPECT_THAT(desk.refusal(use), AllOf(HasSubstr("last.safetensors"), HasSubstr("checksum")));
  }
  // The same of an earlier version is not noticed; but the user is told.
  desk.write("run/last.safetensors", good);
  test::remove_checksums(desk / "run/last.safetensors");
  for (size_t i = 0; i < 4; ++i) {
    const Outcome outcome = desk.tandem(uses[i]);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output + outcome.errors, HasSubstr("no checksums")) << uses[i];
  }
}

}  // namespace
}  // namespace tandem
