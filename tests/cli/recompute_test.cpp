// --recompute as a user meets it: what plan shows of it, what a run keeps of it, and ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"
#include "tests/cli/ranks.h"

namespace tandem {
namespace {

using test::checkpoint;
using test::Desk;
using test::Outcome;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// tiny.prototxt with BatchNorms.
void write_net(const Desk& desk) {
  std::string net =
      "name: 'normal' layer { name: 'data' type: 'Input' top: 'data' top: 'label' input_param { "
      "shape { dim: 12 dim: 3 dim: 8 dim: 8 } shape { dim: 12 } } }\n";
  std::string below = "data";
  for (const char* number : {"1", "2"}) {
    const std::string conv = std::string("conv") + number, norm = std::string("norm") + number;
    net += "layer { name: '" + conv + "' type: 'Convolution' bottom: '" + below + "' top: '" +
           conv +
           "' convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "
           "'xavier' } } }\nlayer { name: '" +
           norm + "' type: 'BatchNorm' bottom: '" + conv + "' top: '" + norm +
           "' batch_norm_param { scale_bias: true } }\nlayer { name: 'relu" + number +
           "' type: 'ReLU' bottom: '" + norm + "' top: '" + norm + "' }\n";
    below = norm;
  }
  net +=
      "layer { name: 'score' type: 'InnerProduct' bottom: 'norm2' top: 'score' "
      "inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'label' "
      "top: 'loss' }\n";
  desk.write("normal.prototxt", net);
}

const std::string train_recomputing =
    "train --net normal.prototxt --data synthetic --data-option size=40 --batch 12 --seed 3 "
    "--threads 1 --out ";

TEST(RecomputeOption, ShowsWhatPlanAndTimelinesCallItsPasses) {
  const Desk desk;
  write_net(desk);
  const std::string plan =
      "plan --net normal.prototxt --devices sim:2 --strategy two_phase --batch 12";
  EXPECT_THAT(desk.tandem(plan + " --recompute").output, HasSubstr("recompute norm1 @1"));
  EXPECT_THAT(desk.tandem(plan).output, Not(HasSubstr("recompute")));
  const Outcome profile = desk.tandem(
      "profile --net normal.prototxt --batch 12 --steps 1 --recompute --trace trace.json");
  EXPECT_EQ(profile.code, 0) << profile.errors;
  EXPECT_THAT(profile.output,
              ContainsRegex("--recompute: [0-9]+ forward passes of layers run again"));
  EXPECT_THAT(desk.read("trace.json"), HasSubstr("recompute norm1 @0"));
}

TEST(RecomputeOption, IsGivenOrTakenBackNotBoth) {
  const Desk desk;
  write_net(desk);
  EXPECT_THAT(desk.tandem(train_recomputing + "run --recompute --no-recompute").errors,
              StartsWith("tandem: --recompute and --no-recompute contradict each other"));
  EXPECT_THAT(desk.tandem(train_recomputing + "run --no-recompute").errors,
              StartsWith("tandem: --no-recompute is for --resume"));
  EXPECT_FALSE(std::filesystem::exists(desk / "run"));
}

TEST(RecomputeOption, IsKeptByTheRunUntilItIsTakenBack) {
  const Desk desk;
  write_net(desk);
  const auto recorded = [&] {
    return nlohmann::json::parse(desk.read("run/run.json"))["options"]["recompute"].get<bool>();
  };
  EXPECT_THAT(desk.tandem(train_recomputing + "run --recompute --steps 2").output,
              ContainsRegex("--recompute: [0-9]+ forward passes of layers run again"));
  EXPECT_TRUE(recorded());
  EXPECT_EQ(desk.tandem("train --resume --out run --steps 3").code, 0);
  EXPECT_TRUE(recorded());
  EXPECT_EQ(desk.tandem("train --resume --out run --no-recompute --steps 4").code, 0);
  EXPECT_FALSE(recorded());
  EXPECT_EQ(desk.tandem(train_recomputing + "plain --steps 4").code, 0);
  EXPECT_TRUE(checkpoint(desk, "run") == checkpoint(desk, "plain"));
}

TEST(RecomputeOption, GivesRanksTheBitsOfOneProcessWithout) {
  if (const std::string reason = test::no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
  const Desk desk;
  write_net(desk);
  const Outcome ranks = desk.tandem(
      train_recomputing + "ranks --recompute --steps 4 --strategy two_phase --devices cpu:1",
      test::mpirun(2));
  EXPECT_EQ(ranks.code, 0) << ranks.output << ranks.errors;
  EXPECT_EQ(
      desk.tandem(train_recomputing + "alone --steps 4 --strategy two_phase --devices cpu:2").code,
      0);
  EXPECT_TRUE(checkpoint(desk, "ranks") == checkpoint(desk, "alone"));
}

}  // namespace
}  // namespace tandem
