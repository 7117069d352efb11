// Ranks that were started differently: one line says what differs, and nothing trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/failing_disk.h"
#include "tests/cli/program.h"
#include "tests/cli/ranks.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Desk;
using test::mpirun;
using test::Outcome;
using testing::HasSubstr;

class RankInputs : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = test::no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
    // Rank 0 starts in the folder "first", rank 1 in "second".
    desk_.write("apart", R"(case "$OMPI_COMM_WORLD_RANK" in 0) cd first ;; *) cd second ;; esac
exec "$@")");
    // "each FIRST SECOND COMMAND...": rank 0 has the options FIRST besides, rank 1 SECOND.
    desk_.write("each", R"(first="$1" second="$2"
shift 2
case "$OMPI_COMM_WORLD_RANK" in 0) exec "$@" $first ;; *) exec "$@" $second ;; esac)");
    desk_.make_folder("first");
    desk_.make_folder("second");
  }

  [[nodiscard]] Outcome started(const std::string& first, const std::string& second) const {
    return desk_.tandem(train_ + "--net tiny.prototxt",
                        mpirun(2) + " sh each '" + first + "' '" + second + "'");
  }
  [[nodiscard]] Outcome started_apart(const std::string& options) const {
    return desk_.tandem(train_ + options, mpirun(2) + " sh apart");
  }
  // The job ends with exit code 1 and this in the one line that ranks print.
  static void expect_refusal(const Outcome& outcome, const std::string& part) {
    EXPECT_EQ(outcome.code, 1) << outcome.output;
    EXPECT_THAT(outcome.errors, HasSubstr(part));
    EXPECT_EQ(outcome.errors.find("tandem: "), outcome.errors.rfind("tandem: ")) << outcome.errors;
  }

  const Desk desk_;
  const std::string train_ =
      "train --data synthetic --data-option size=40 --batch 4 --steps 2 --threads 1 --devices "
      "cpu:1 ";
};

TEST_F(RankInputs, ThatDifferInAnOptionAreRefusedWithBothValues) {
  const Outcome outcome = started("--seed 1", "--seed 2");
  expect_refusal(outcome, "tandem: option --seed: rank 1 (host ");
  EXPECT_THAT(outcome.errors, HasSubstr(") was started with '2', rank 0 (host "));
  EXPECT_THAT(outcome.errors, HasSubstr(") with '1': start all ranks with the same options"));
}

TEST_F(RankInputs, ThatLackAnOptionAreRefused) {
  const Outcome outcome = started("--balance", "");
  expect_refusal(outcome, "tandem: option --balance: rank 1 (host ");
  EXPECT_THAT(outcome.errors, HasSubstr(") was started without it, rank 0 (host "));
}

TEST_F(RankInputs, MayDifferInTheTimeThatARankWaits) {
  const Outcome outcome = started("--watchdog 50", "--watchdog 60");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

TEST_F(RankInputs, WithAnotherNetOfTheSameNameAreRefused) {
  desk_.write("first/net.prototxt", test::tiny_net());
  desk_.write("second/net.prototxt", test::tiny_net() + "# another\n");
  const Outcome outcome = started_apart("--net net.prototxt");
  expect_refusal(outcome, "tandem: file 'net.prototxt': it has ");
  EXPECT_THAT(outcome.errors, HasSubstr(" for rank 1 (host "));
  EXPECT_THAT(outcome.errors, HasSubstr(" bytes, checksum "));
}

TEST_F(RankInputs, InAnotherOrderAreTheSame) {
  const Outcome outcome = started("--data-option val_size=8 --data-option channels=3",
                                  "--data-option channels=3 --data-option val_size=8");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

TEST_F(RankInputs, ThatHappenToBeTheNameOfAFileAreNoFile) {
  desk_.write("first/net.prototxt", test::tiny_net());
  desk_.write("first/4", "a");
  desk_.write("second/4", "another");
  const Outcome outcome = started_apart("--net net.prototxt");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

TEST_F(RankInputs, WithOtherLabelsInTheListAreRefused) {
  desk_.write("first/net.prototxt", test::tiny_net());
  desk_.write("first/list.csv", "path,label\na.ppm,0\nb.ppm,1\n");
  desk_.write("second/list.csv", "path,label\na.ppm,1\nb.ppm,0\n");
  expect_refusal(desk_.tandem("train --data list.csv --net net.prototxt", mpirun(2) + " sh apart"),
                 "tandem: file 'list.csv': it has ");
}

TEST_F(RankInputs, OfAProfileAreRefusedIfTheyDiffer) {
  const Outcome outcome =
      desk_.tandem("profile --net tiny.prototxt --devices cpu:1 --threads 1 --warm-up 1",
                   mpirun(2) + " sh each '--steps 2' '--steps 4'");
  expect_refusal(outcome, "tandem: option --steps: rank 1 (host ");
}

TEST_F(RankInputs, WithoutTheNetTakeThatOfRankZero) {
  desk_.write("first/net.prototxt", test::tiny_net());
  const Outcome outcome = started_apart("--net net.prototxt");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

TEST_F(RankInputs, WithAnotherNetOfTheSameSolverAreRefused) {
  for (const char* folder : {"first/", "second/"}) {
    desk_.write(std::string(folder) + "solver.prototxt", "net: \"net.prototxt\" base_lr: 0.01\n");
  }
  desk_.write("first/net.prototxt", test::tiny_net());
  desk_.write("second/net.prototxt", test::tiny_net() + "# another\n");
  expect_refusal(started_apart("--solver solver.prototxt"),
                 "): file 'net.prototxt' is not that of rank 0: ");
}

TEST_F(RankInputs, WithAsManyOtherImagesAreRefused) {
  desk_.write("first/net.prototxt", test::tiny_net());
  desk_.draw_two_classes("first/data");
  desk_.draw_two_classes("second/data");
  fs::rename(desk_ / "second/data/train/red/1.ppm", desk_ / "second/data/train/red/other.ppm");
  const Outcome outcome = desk_.tandem(
      "train --data /proc/self/cwd/data --batch 4 --steps 2 --threads 1 --devices cpu:1 --net "
      "net.prototxt",
      mpirun(2) + " sh apart");
  expect_refusal(outcome,
                 "): the data in '/proc/self/cwd/data' (split 'train') are not those of rank 0");
  EXPECT_THAT(outcome.errors, HasSubstr("tandem: rank 1 of 2 (host "));
}

TEST_F(RankInputs, WithOtherImagesToTestAreRefused) {
  desk_.write("net.prototxt", test::tiny_net());
  desk_.draw_two_classes("first/data");
  desk_.draw_two_classes("second/data");
  fs::rename(desk_ / "second/data/val/red/1.ppm", desk_ / "second/data/val/red/other.ppm");
  ASSERT_EQ(desk_
                .tandem("train --data first/data --batch 4 --steps 2 --threads 1 --devices cpu:1 "
                        "--net net.prototxt --out first/run")
                .code,
            0);
  const Outcome outcome = desk_.tandem("test --run run --data /proc/self/cwd/data --devices cpu:1",
                                       mpirun(2) + " sh apart");
  expect_refusal(outcome, "): the data in '/proc/self/cwd/data' (split '");
  EXPECT_THAT(outcome.errors, HasSubstr("') are not those of rank 0: other names"));
}

// Rank 1 runs a copy of the program in which the version of one module has other digits.
TEST_F(RankInputs, WithAnotherVersionOfTheTransportAreRefused) {
  const fs::path build = test::build_folder();
  fs::create_directories(desk_ / "other/bin");
  fs::create_directories(desk_ / "other/lib/tandem/plugins");
  fs::copy(build / "bin/tandem", desk_ / "other/bin/tandem");
  for (const auto& entry : fs::directory_iterator(build / "lib")) {
    const fs::path name = entry.path().filename();
    if (name != "tandem") fs::create_symlink(entry.path(), desk_ / "other/lib" / name);
  }
  const std::string module = "tandem_transport_mpi.so";
  for (const auto& entry : fs::directory_iterator(build / "lib/tandem/plugins")) {
    const fs::path target = desk_ / "other/lib/tandem/plugins" / entry.path().filename();
    if (entry.path().filename() != module) fs::create_symlink(entry.path(), target);
  }
  std::string bytes = test::read_text(build / "lib/tandem/plugins" / module);
  const size_t at = bytes.find(std::string("\0000.1.0\0", 7));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = '7';
  desk_.write("other/lib/tandem/plugins/" + module, bytes);
  desk_.write("newer", R"(shift_program() { shift; exec other/bin/tandem "$@"; }
case "$OMPI_COMM_WORLD_RANK" in 0) exec "$@" ;; *) shift_program "$@" ;; esac)");
  const Outcome outcome =
      desk_.tandem(train_ + "--net tiny.prototxt --watchdog 30", mpirun(2) + " sh newer");
  expect_refusal(outcome, "tandem: transport 'mpi': rank 1 (host ");
  EXPECT_THAT(outcome.errors,
              HasSubstr(") has version 7.1.0 of this module, and rank 0 has version "
                        "0.1.0: install the same version"));
}

// The system may refuse what wakes a rank when another one of its host has a message.
TEST_F(RankInputs, WithoutSocketsBetweenProcessesTrainToTheSameBits) {
  const std::string options = train_ + "--net tiny.prototxt --strategy layerwise --seed 3 --out ";
  const Outcome deaf =
      desk_.tandem(options + "deaf", "FAILING_DATAGRAMS=1 " + test::failing_disk + " " + mpirun(2));
  ASSERT_EQ(deaf.code, 0) << deaf.errors;
  ASSERT_EQ(desk_.tandem(options + "hearing", mpirun(2)).code, 0);
  EXPECT_TRUE(test::checkpoint(desk_, "deaf") == test::checkpoint(desk_, "hearing"));
}

}  // namespace
}  // namespace tandem
