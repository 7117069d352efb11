// Training by several processes, as mpirun starts them: the bits of one process with all devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <utility>

#include "tests/cli/program.h"
#include "tests/cli/ranks.h"

namespace tandem {
namespace {

using test::checkpoint;
using test::Desk;
using test::mpirun;
using test::Outcome;
using test::Ranks;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Ranks, HaveTheBitsOfOneProcessForEveryStrategy) {
  const Desk desk;
  test::expect_bits_of_one_process(
      test::jobs_of_every_strategy(),
      [&](const std::string& name, const std::string& options, int ranks) {
        return trained(desk, name, options, ranks);
      },
      [](int devices) { return "cpu:" + std::to_string(devices); });
}

TEST_F(Ranks, ResumeWithAnyNumberOfRanks) {
  const Desk desk;
  const std::string options = "--strategy layerwise --steps ";
  (void)trained(desk, "run", options + "3 --devices cpu:1", 2);
  (void)trained(desk, "alone", options + "3 --devices cpu:2", 1);
  const std::string more = "train --resume --steps 6 --threads 1 --devices ";
  const Outcome two = desk.tandem(more + "cpu:2 --out run", mpirun(2));
  EXPECT_EQ(two.code, 0) << two.output << two.errors;
  EXPECT_THAT(two.output, HasSubstr("resumed after step 3"));
  EXPECT_EQ(desk.tandem(more + "cpu:4 --out alone").code, 0);
  EXPECT_TRUE(checkpoint(desk, "run") == checkpoint(desk, "alone"));
  EXPECT_EQ(desk.tandem("train --resume --steps 7 --threads 1 --out run").code, 0);
}

TEST_F(Ranks, UnfreezeTogetherAndGoOnWhereTheyStoppedBefore) {
  const Desk desk;
  (void)trained(desk, "first", "--steps 1 --devices cpu:1", 1);
  const std::string options =
      "--weights first/last.safetensors --recipe caffe --unfreeze-after 0.6 --ema 0.9 --strategy "
      "layerwise --steps 6 --devices ";
  const std::string two = trained(desk, "two", options + "cpu:1", 2);
  EXPECT_TRUE(two == trained(desk, "alone", options + "cpu:2", 1));
  EXPECT_THAT(desk.read("two/log.txt"), HasSubstr("after step 2 all layers learn"));
  (void)trained(desk, "chosen",
                "--weights first/last.safetensors --recipe caffe --unfreeze-after 0.6 --steps 3 "
                "--devices cpu:1",
                2);
  const Outcome more =
      desk.tandem("train --resume --steps 6 --threads 1 --out chosen --devices cpu:1", mpirun(2));
  EXPECT_EQ(more.code, 0) << more.output << more.errors;
  EXPECT_THAT(more.output, HasSubstr("resumed after step 3"));
}

TEST_F(Ranks, ValidateEveryImageOnceAndOnlyTheFirstOneSpeaks) {
  const Desk desk;
  desk.draw_two_classes("data");
  const std::string options =
      "train --net tiny.prototxt --data data --batch 5 --epochs 2 --threads 1 --out ";
  const Outcome two = desk.tandem(options + "two --devices cpu:1", mpirun(2));
  const Outcome one = desk.tandem(options + "one --devices cpu:2");
  ASSERT_EQ(two.code, 0) << two.output << two.errors;
  ASSERT_EQ(one.code, 0) << one.errors;
  const auto validation = [](const std::string& text) {
    const size_t at = text.find("best validation");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_THAT(validation(two.output), StartsWith("best validation"));
  EXPECT_EQ(validation(two.output), validation(one.output));
  EXPECT_EQ(two.errors, "");
  const auto count = [](const std::string& text, const std::string& part) {
    int times = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++times;
    }
    return times;
  };
  EXPECT_EQ(count(two.output, "run folder: two"), count(one.output, "run folder: one"));
  EXPECT_THAT(two.output, HasSubstr("2 ranks of cpu:1 (2 ranks on "));
}

TEST_F(Ranks, TestEveryImageOnceWithTheFiguresOfOneProcess) {
  const Desk desk;
  desk.draw_two_classes("data");
  desk.draw("more/val/blue", 17, 30, 30, 210);
  desk.draw("more/val/red", 16, 210, 30, 30);
  desk.write("more/val/red/2.ppm", "P6 10 10 255\n");  // damaged
  desk.write("more/val/blue/9.ppm", "P6 10 10 255\n");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data data --batch 5 --steps 3 --out run").code,
            0);
  const std::string test = "test --run run --data more --batch 7 --json ";
  for (const auto& [ranks, devices] : {std::pair{2, 2}, std::pair{3, 1}}) {
    const std::string each = "--devices cpu:" + std::to_string(devices);
    const std::string all = "--devices cpu:" + std::to_string(ranks * devices);
    const Outcome together = desk.tandem(test + each, mpirun(ranks));
    EXPECT_EQ(together.code, 0) << together.errors;
    EXPECT_EQ(together.output, desk.tandem(test + "--no-report " + all).output)
        << ranks << " ranks of " << devices;
    EXPECT_THAT(together.output, HasSubstr("\"images\": 31"));
    EXPECT_THAT(together.output, HasSubstr("\"skipped\": 2"));
    EXPECT_THAT(together.errors, HasSubstr("testing on " + std::to_string(ranks) + " ranks of "));
  }
  EXPECT_THAT(desk.read("run/report.html"), HasSubstr("on the split 'test' of 'more'"));
}

TEST_F(Ranks, TestOnlyTheDataOfTheFirstOne) {
  const Desk desk;
  desk.draw_two_classes("data");
  desk.draw_two_classes("first/data");
  desk.draw_two_classes("second/data");
  desk.draw("second/data/val/red", 9, 210, 30, 30);
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data data --batch 5 --steps 3 --out run").code,
            0);
  desk.write("each", R"(case "$OMPI_COMM_WORLD_RANK" in 0) cd first ;; *) cd second ;; esac
exec "$@")");
  const Outcome outcome = desk.tandem("test --run ../run --data data", mpirun(2) + " sh each");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("): the data in 'data' are not those of "
                                        "rank 0: 11 images here, 4 there"));
}

TEST_F(Ranks, StopTogetherWhereASignalReachesAnyOfThem) {
  const Desk desk;
  desk.write("each", "echo $$ > pid$OMPI_COMM_WORLD_RANK; exec \"$@\"");
  test::RunningProgram program(
      desk, tiny + "--steps 1000000 --snapshot 5 --threads 1 --devices cpu:1 --out run",
      mpirun(2) + " sh each");
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  ASSERT_EQ(::kill(std::stoi(desk.read("pid1")), SIGTERM), 0);
  const Outcome outcome = program.stop(0);
  EXPECT_EQ(outcome.code, 130) << outcome.errors;
  EXPECT_THAT(desk.read("run/log.txt"), HasSubstr("and saved; go on with"));
}

// Devices 0 and 2 are near each other, and 1 and 3, so that a ring has another order.
TEST_F(Ranks, FollowATopologyOfTheDevicesOfAllRanks) {
  const Desk desk;
  desk.write("links.txt", R"(device { name: "a" name: "b" name: "c" name: "d" }
switch { name: "left" } switch { name: "right" }
link { between: "a" between: "c" and: "left" bandwidth: "10GB/s" }
link { between: "b" between: "d" and: "right" bandwidth: "10GB/s" }
link { between: "left" and: "right" bandwidth: "1GB/s" }
)");
  const std::string options = "--strategy layerwise --reduce ring --steps 4 --topology links.txt ";
  EXPECT_TRUE(trained(desk, "ranks", options + "--devices cpu:2", 2) ==
              trained(desk, "alone", options + "--devices cpu:4", 1));
  const Outcome three = desk.tandem(tiny + options + "--devices cpu:1", mpirun(3));
  EXPECT_NE(three.code, 0);
  EXPECT_THAT(three.errors, HasSubstr("has 4 devices, but 3 ranks of cpu:1 have 3"));
}

TEST_F(Ranks, ChooseAStrategyByWhatRankZeroMeasures) {
  const Desk desk;
  const Outcome outcome = desk.tandem(
      tiny + "--strategy auto --devices cpu:2 --threads 1 --steps 3 --out run", mpirun(2));
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("measured between ranks"));
  EXPECT_THAT(outcome.output, HasSubstr("chosen: "));
  const Outcome more =
      desk.tandem("train --resume --steps 6 --threads 1 --out run --devices cpu:2", mpirun(2));
  EXPECT_EQ(more.code, 0) << more.output << more.errors;
  EXPECT_THAT(more.output, HasSubstr("resumed after step 3"));
}

}  // namespace
}  // namespace tandem
