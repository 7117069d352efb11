#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/cpu_precision.h"
#include "tests/support/emulation.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using test::patience;
using testing::AllOf;
using testing::HasSubstr;

std::string app_refusal(const std::string& arguments) {
  const Desk desk;
  const Outcome outcome = desk.alexnet(arguments);
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_EQ(outcome.errors.find('\n'), outcome.errors.size() - 1) << outcome.errors;
  return outcome.errors;
}

// Small images and few classes: the same plan in a fraction of the time.
const std::string small = "--size 67 --classes 10 --batch 4 --steps 2 --warm-up 1 ";

TEST(AlexNetApp, ShowsStagesFormulaAndComparisonsAndWritesTheTimeline) {
  const Desk desk;
  const Outcome outcome = desk.alexnet(small + "--devices cpu:2 --costs costs.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  for (const char* part :
       {"batch 4 in all on cpu:2, strategy two_phase", "compute: real", "input: synthetic",
        "send_fc_gradients", "update_conv", "images/s", "a + b + max(c, m) + n",
        "sequential, the same work", "exposed communication", "peak memory"}) {
    EXPECT_THAT(outcome.output, HasSubstr(part));
  }
  EXPECT_THAT(outcome.output, HasSubstr("alexnet_timeline.json: open it in"));
  EXPECT_TRUE(nlohmann::json::accept(desk.read("alexnet_timeline.json")));

  const Outcome paced =
      desk.alexnet(small + "--devices cpu:4 --paced costs.csv --link bandwidth=1GB/s,latency=10us");
  EXPECT_EQ(paced.code, 0) << paced.errors;
  EXPECT_THAT(paced.output, HasSubstr("compute: paced by costs.csv"));
  EXPECT_THAT(desk.alexnet(small + "--devices cpu:2 --paced costs.csv --precision bfloat16").errors,
              HasSubstr("costs.csv:2: these costs were measured in float32, not in bfloat16"));
}

// Options are for the strategies that have them; each has a formula beside its step.
TEST(AlexNetApp, ComparesAllStrategiesWithTheirFormulas) {
  TANDEM_SKIP_IF_EMULATED("steps of AlexNet");
  const Desk desk;
  const Outcome outcome =
      desk.alexnet(small + "--devices cpu:2 --strategy all --plain-broadcast --quota 1");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("= a + b + c + m + n + broadcast"),
                                    HasSubstr("= a + b + max(c, m) + n"),
                                    HasSubstr("= max(compute, busiest link)")));
  EXPECT_THAT(outcome.output, testing::Not(HasSubstr("cannot be")));
}

TEST(AlexNetApp, ReportsNoCommunicationOnOneDevice) {
  const Desk desk;
  const bool half = test::no_bfloat16().empty();
  const Outcome outcome = desk.alexnet(small + "--devices cpu:1 --strategy sequential" +
                                       (half ? " --precision bfloat16" : ""));
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr(half ? "compute: real, bfloat16" : "compute: real"));
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("none: there is one device"),
                                    HasSubstr("a + b + c + m + n + broadcast")));
}

TEST(AlexNetApp, RefusesBadInputInOneLine) {
  EXPECT_THAT(app_refusal("--batch 0"),
              HasSubstr("tandem-alexnet: --batch 0: the batch must have"));
  EXPECT_THAT(app_refusal("--data nowhere"), HasSubstr("data 'nowhere': there is no such folder"));
  EXPECT_THAT(app_refusal("--data nowhere --synthetic"), HasSubstr("--help"));
  EXPECT_THAT(app_refusal("--epochs 3"), HasSubstr("--data"));
  EXPECT_THAT(app_refusal("--precision half"),
              HasSubstr("there are float32, tf32, bfloat16 and float16"));
  EXPECT_THAT(app_refusal(small + "--devices tpu"), HasSubstr("'tpu'"));
  EXPECT_THAT(app_refusal(small + "--devices cpu:8"), HasSubstr("8 devices"));
  EXPECT_THAT(app_refusal(small + "--strategy two_phases"), HasSubstr("did you mean 'two_phase'?"));
  EXPECT_THAT(app_refusal(small + "--paced nowhere.csv"), HasSubstr("nowhere.csv"));
  EXPECT_THAT(app_refusal("--strategy fc_parallel --bucket 1MiB"),
              HasSubstr("--bucket is an option of strategies 'layerwise' and 'mixed'"));
  EXPECT_THAT(app_refusal("--quota 2"), HasSubstr("strategy 'two_phase' has none of that name"));
  EXPECT_THAT(app_refusal("--size 5"), AllOf(HasSubstr("layer '"), HasSubstr("alexnet.prototxt:")));
}

TEST(AlexNetApp, RefusesAStrategyBeforeMeasuringAnything) {
  const Desk desk;
  const Outcome outcome =
      desk.alexnet(small + "--devices cpu:2 --strategy fc_parallel --precision bfloat16");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("strategy 'fc_parallel' adds up parts of its gradients in "
                                        "float32"));
  EXPECT_EQ(outcome.output, "");
}

TEST(AlexNetApp, TrainsOnAFolderOfImages) {
  TANDEM_SKIP_IF_EMULATED("steps of AlexNet");
  const Desk desk;
  desk.draw("images/train/blue", 3, 20, 20, 200);
  desk.draw("images/train/red", 3, 200, 20, 20);
  desk.draw("images/val/blue", 1, 20, 20, 200);
  desk.draw("images/val/red", 1, 200, 20, 20);
  const Outcome outcome =
      desk.alexnet("--data images --devices cpu:2 --batch 2 --steps 1 --warm-up 1 --out run");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("6 training images, 2 classes"),
                                    HasSubstr("trained 1 steps on real images")));
  EXPECT_TRUE(std::filesystem::exists(desk / "run/last.safetensors"));
}

TEST(AlexNetApp, SaysWhatItCannotPrint) {
  const Desk desk;
  for (const std::string& arguments : {small + "--devices cpu:1", std::string("--help")}) {
    EXPECT_THAT(app_refusal(arguments + " > /dev/full"),
                HasSubstr("standard output cannot be written: No space left on device"));
  }
}

TEST(AlexNetApp, SavesTheRunWhenItsTerminalCloses) {
  TANDEM_SKIP_IF_EMULATED("steps of AlexNet");
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.alexnet(
      "--data images --devices cpu:1 --batch 2 --steps 1000000 --warm-up 1 --out run & app=$!; "
      "until [ -e run/last.safetensors ]; do sleep 0.1; done; "
      "kill -HUP $app; wait $app",
      fmt::format("timeout {}", 300 * patience));
  EXPECT_EQ(outcome.code, 130) << outcome.errors;
  EXPECT_THAT(desk.read("run/log.txt"), HasSubstr("and saved"));
  EXPECT_TRUE(std::filesystem::exists(desk / "run/last.safetensors"));
}

}  // namespace
}  // namespace tandem
