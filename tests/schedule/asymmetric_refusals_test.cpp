// What the strategy `asymmetric` refuses, and what it leaves alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/schedule/frozen_layers.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Net& two_layer_net() {
  static const Net dense = FakeNet("dense", 9, {1, 1, 5, 5})
                               .inner_product("fc1", 21)
                               .relu("relu1")
                               .inner_product("fc2", 10)
                               .loss()
                               .finish();
  return dense;
}

StrategyInputs with_groups(const std::string& groups) {
  StrategyInputs inputs = inputs_of(two_layer_net(), 4);
  inputs.options["groups"] = groups;
  return inputs;
}

std::string asymmetric_refusal(const StrategyInputs& inputs) {
  return message_of([&] { (void)build_plan("asymmetric", inputs); });
}

TEST(Asymmetric, RefusesGroupsThatAreNotADivisionOfTheDevices) {
  const auto of = [](const std::string& groups) { return asymmetric_refusal(with_groups(groups)); };
  EXPECT_THAT(of("E=/W=0,1,2,3"), HasSubstr("group E is empty"));
  EXPECT_THAT(of("E=0,1,2,3/W="), HasSubstr("group W is empty"));
  EXPECT_THAT(of("E=0,1/W=2"), HasSubstr("device 3 is in neither group"));
  EXPECT_THAT(of("E=0,1/W=1,2,3"), HasSubstr("device 1 is named more than once"));
  EXPECT_THAT(of("E=0,1/W=2,4"), HasSubstr("'4' is none of the 4 devices"));
  EXPECT_THAT(of("E=0,1/W=2,x"), HasSubstr("'x' is no number of a device"));
  EXPECT_THAT(of("E=0,1,/W=2,3"), HasSubstr("group E has a comma without a number"));
  EXPECT_THAT(of("E=0,1/W=2,,3"), HasSubstr("group W has a comma without a number"));
  EXPECT_THAT(of("0,1/2,3"), HasSubstr("'0,1' does not begin with 'E='"));
  EXPECT_THAT(of("E=0,1"), AllOf(HasSubstr("no '/'"), HasSubstr("as E=0,2/W=1,3")));
}

TEST(Asymmetric, RefusesOneDeviceAndLayersThatMixSamples) {
  EXPECT_THAT(asymmetric_refusal(inputs_of(two_layer_net(), 1)), HasSubstr("at least 2 devices"));
  const Net normalized = normalised_net(9);
  EXPECT_THAT(asymmetric_refusal(inputs_of(normalized, 2)),
              AllOf(HasSubstr("layer 'norm1' (BatchNorm)"), HasSubstr("mixes the samples")));
}

TEST(Asymmetric, LeavesFrozenLayersAlone) {
  expect_frozen_layers_left_alone("asymmetric");
}

}  // namespace
}  // namespace tandem::test
