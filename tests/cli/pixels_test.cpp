// --pixels as a user says it: what is refused, what is shown, what a run remembers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Pixels, OfAnUnknownFormAreRefusedByEveryCommand) {
  const Desk desk;
  for (const char* command : {"train --net tiny.prototxt --data synthetic", "test --run r",
                              "profile --net tiny.prototxt", "plan --net tiny.prototxt"}) {
    EXPECT_THAT(desk.refusal(std::string(command) + " --pixels byts"),
                HasSubstr("--pixels 'byts': there are auto, bytes and floats (did you mean "
                          "'bytes'?)"))
        << command;
  }
}

TEST(Pixels, AsBytesAreRefusedForFloatDataWithoutLeavingARun) {
  const Desk desk;
  EXPECT_THAT(
      desk.refusal("train --net tiny.prototxt --data synthetic --steps 2 --out run "
                   "--pixels bytes"),
      HasSubstr("--pixels bytes: data 'synthetic': data set 'synthetic' gives floats; leave "
                "the option out, or give --pixels floats"));
  EXPECT_FALSE(std::filesystem::exists(desk / "run"));
}

TEST(Pixels, AsBytesAreKeptByTheRunAndItsTests) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string train = "train --net tiny.prototxt --data images --batch 4 --lr 0.01 ";
  const Outcome begun = desk.tandem(train + "--steps 3 --out run --pixels bytes");
  ASSERT_EQ(begun.code, 0) << begun.errors;
  EXPECT_THAT(desk.read("run/log.txt"), HasSubstr("pixels are bytes"));
  EXPECT_THAT(desk.read("run/plan.txt"), HasSubstr("convert input @0"));
  const Outcome resumed = desk.tandem("train --out run --resume --steps 6");
  ASSERT_EQ(resumed.code, 0) << resumed.errors;
  ASSERT_EQ(desk.tandem(train + "--steps 6 --out whole --pixels bytes").code, 0);
  EXPECT_TRUE(desk.read("run/last.safetensors") == desk.read("whole/last.safetensors"));
  EXPECT_THAT(desk.refusal("train --out run --resume --steps 9 --pixels floats"),
              HasSubstr("--pixels cannot change when run"));
  EXPECT_THAT(desk.tandem("test --run run --json").output, HasSubstr("\"pixels\": \"bytes\""));
  EXPECT_THAT(desk.tandem("test --run run --json --pixels floats").output,
              HasSubstr("\"pixels\": \"floats\""));
}

TEST(Pixels, AsBytesArePlannedAndSimulated) {
  const Desk desk;
  const std::string plan = "plan --net tiny.prototxt --devices sim:2 ";
  EXPECT_THAT(desk.tandem(plan + "--pixels bytes").output, HasSubstr("convert input @1"));
  EXPECT_THAT(desk.tandem(plan).output, Not(HasSubstr("convert input")));
  const Outcome profiled = desk.tandem(
      "profile --net tiny.prototxt --steps 1 --warm-up 1 --pixels bytes --costs costs.csv");
  ASSERT_EQ(profiled.code, 0) << profiled.errors;
  EXPECT_THAT(desk.read("costs.csv"), HasSubstr("\nconvert,"));
  EXPECT_THAT(desk.tandem(plan + "--pixels bytes --costs costs.csv").output,
              HasSubstr("tasks measured"));
}

const auto are_bytes_by_default =
    AllOf(HasSubstr("convert input @0"),
          HasSubstr("\npixels: bytes by default (to change: --pixels floats)\n"));
const auto are_floats_by_default =
    AllOf(Not(HasSubstr("convert input")), HasSubstr("\npixels: floats by default"));

TEST(Pixels, OfSimulatedDevicesFollowTheirCosts) {
  const Desk desk;
  const std::string profile = "profile --net tiny.prototxt --steps 1 --warm-up 1 ";
  const Outcome profiled = desk.tandem(profile + "--pixels bytes --costs costs.csv");
  ASSERT_EQ(profiled.code, 0) << profiled.errors;
  EXPECT_THAT(profiled.output, HasSubstr("\npixels: bytes\n"));
  const std::string plan = "plan --net tiny.prototxt --devices ";
  EXPECT_THAT(desk.tandem(plan + "sim:1 --costs costs.csv").output, are_bytes_by_default);
  EXPECT_THAT(desk.tandem(plan + "sim:1").output, are_floats_by_default);
  EXPECT_THAT(desk.tandem(plan + "cpu:1 --costs costs.csv").output, are_floats_by_default);
  EXPECT_THAT(desk.tandem(plan + "sim:1 --costs costs.csv --pixels floats").output,
              AllOf(Not(HasSubstr("convert input")), HasSubstr("\npixels: floats\n")));
}

// There the loader makes the floats, and they travel.
TEST(Pixels, AreFloatsOnABackendThatDoesNotConvertBytes) {
  const Desk desk;
  const std::string older =
      "TANDEM_PLUGIN_PATH='" + test::test_plugin_folder().string() + "/old_backend'";
  const std::string profile =
      "profile --net tiny.prototxt --steps 1 --warm-up 1 --pixels bytes --costs costs.csv";
  const Outcome profiled = desk.tandem(profile, older);
  ASSERT_EQ(profiled.code, 0) << profiled.errors;
  EXPECT_THAT(profiled.output,
              HasSubstr("\npixels: floats; the backend of the devices does not convert bytes\n"));
  EXPECT_THAT(desk.read("costs.csv"), Not(HasSubstr("\nconvert,")));
  EXPECT_THAT(desk.tandem(profile + " --json", older).output, HasSubstr("\"pixels\": \"floats\""));
}

#ifdef TANDEM_HAS_CUDA
TEST(Pixels, OfSimulatedGpusAreBytesByDefault) {
  const Desk desk;
  const std::string plan = "plan --net tiny.prototxt --devices sim:1 --precision ";
  for (const char* precision : {"tf32", "float16"}) {
    EXPECT_THAT(desk.tandem(plan + precision).output, are_bytes_by_default) << precision;
  }
  EXPECT_THAT(desk.tandem(plan + "tf32 --strategy all").output,
              HasSubstr("\npixels: bytes by default"));
  for (const char* strategy : {"sequential", "all"}) {
    EXPECT_THAT(desk.tandem(plan + "tf32 --json --strategy " + strategy).output,
                HasSubstr("\"pixels\": \"bytes\""));
  }
}
#endif

TEST(Pixels, OfFiveChannelsAreFloats) {
  const Desk desk;
  desk.write("five.prototxt", R"(name: "five"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 5 dim: 8 dim: 8 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
layer { name: "score" type: "InnerProduct" bottom: "data" top: "score"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
)");
  EXPECT_THAT(desk.refusal("plan --net five.prototxt --pixels bytes"),
              HasSubstr("--pixels bytes: images have 1 to 4 channels, the net takes 5"));
}

}  // namespace
}  // namespace tandem
