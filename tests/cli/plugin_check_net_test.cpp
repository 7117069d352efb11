// `tandem plugin check --net`: the layers of a net as cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

TEST(PluginCheck, TakesTheLayersOfANetAsCases) {
  const Desk desk;
  const Outcome all = desk.tandem("plugin check --net tiny.prototxt --promise declarations");
  EXPECT_EQ(all.code, 0) << all.errors;
  EXPECT_THAT(all.output, AllOf(HasSubstr("Convolution"), HasSubstr("ReLU"),
                                HasSubstr("InnerProduct"), testing::Not(HasSubstr("Pooling"))));
  const Outcome one =
      desk.tandem("plugin check --net tiny.prototxt --layer conv1 --promise memory --json");
  EXPECT_EQ(one.code, 0) << one.errors;
  for (const auto& finding : nlohmann::json::parse(one.output)) {
    EXPECT_EQ(finding.at("layer"), "Convolution");
  }
  EXPECT_THAT(desk.refusal("plugin check --net tiny.prototxt --layer conv7"),
              AllOf(HasSubstr("'conv7'"), HasSubstr("did you mean 'conv1'?")));
  EXPECT_THAT(desk.refusal("plugin check --net tiny.prototxt --input 1x2x3x4"),
              HasSubstr("give one of them"));
}

TEST(PluginCheck, GivesALayerOfANetTheValuesThatItsTypeNeeds) {
  const Desk desk;
  desk.write("net.prototxt", test::replaced(test::tiny_net(), "type: \"ReLU\" bottom: \"conv1\"",
                                            "type: \"Log\" bottom: \"conv1\""));
  const Outcome outcome =
      desk.tandem("plugin check Log --net net.prototxt --promise 'input gradients'");
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PluginCheck, OfALayerOfANetPrintsACommandThatChecksItAgain) {
  const Desk desk;
  desk.write("net.prototxt", test::replaced(test::tiny_net(), "type: \"ReLU\" bottom: \"conv1\"",
                                            "type: \"mistake.WrongInputGradient\" "
                                            "bottom: \"conv1\" bottom: \"conv1\""));
  const Outcome outcome = desk.tandem(
      "plugin check '" + (test::test_plugin_folder() / "mistakes/mistakes.so").string() +
      "' --net net.prototxt");
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("broken input gradients"));
  EXPECT_THAT(outcome.output,
              HasSubstr("--net net.prototxt --promise 'input gradients' --layer relu1"));
}
#endif

}  // namespace
}  // namespace tandem
