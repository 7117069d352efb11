// What fc_parallel and hybrid do by default: what is the fastest in virtual time.
#include "core/schedule/strategies/common/fastest_variant.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/schedule/cost/bounds.h"
#include "core/schedule/strategies/fc_parallel/fc_parallel.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/simulate.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Net& wide_dense_net() {
  static const Net net = FakeNet("dense", 16, {1, 1, 8, 8})
                             .inner_product("fc1", 64)
                             .relu("relu1")
                             .inner_product("fc2", 64)
                             .relu("relu2")
                             .inner_product("fc3", 16)
                             .loss()
                             .finish();
  return net;
}

// Backward passes over a whole batch take so long; those of the last layer `last_seconds`.
CostTable costs_of(const Net& net, double seconds, double last_seconds) {
  CostTable costs(Roofline{1e15, 1e15});
  for (const Layer& layer : net.layers) {
    const double each = layer.name == "fc3" ? last_seconds : seconds;
    costs.set(layer.name + " backward_data", {each, double(net.batch), 0});
    costs.set(layer.name + " backward_weights", {each, double(net.batch), 0});
  }
  return costs;
}
CostTable costs_of(const Net& net, double seconds) {
  return costs_of(net, seconds, seconds);
}

FastestVariant chosen(const std::string& strategy, const StrategyInputs& inputs) {
  return fastest_variant(built_in_strategies().at(strategy), inputs);
}

int quota_of(const StrategyOptions& options) {
  return fc_parallel_options().read(options).quota;
}

// Each variant beside the one that was taken.
void expect_fastest(const std::string& strategy, StrategyInputs inputs) {
  inputs.options = chosen(strategy, inputs).options;
  const double taken = step_on_sim(strategy, inputs);
  inputs.options = {};
  for (const StrategyVariant& variant : built_in_strategies().at(strategy).variants(inputs)) {
    inputs.options = variant.options;
    EXPECT_LE(taken, step_on_sim(strategy, inputs) * (1 + 1e-9)) << variant.label;
  }
}

TEST(FastestVariant, IsTheFastestOfAllQuotas) {
  const Net& net = wide_dense_net();
  for (const double seconds : {1e-6, 1e-3}) {
    for (const double bandwidth : {1e6, 1e9}) {
      const CostTable costs = costs_of(net, seconds);
      StrategyInputs inputs = inputs_of(net, 4);
      inputs.costs = &costs;
      inputs.link = {bandwidth, 1e-6};
      expect_fastest("fc_parallel", inputs);
    }
  }
}

// The last layer's rounds are rows of the batch, so it gains by beginning early; the layers below
// repeat their products in every round.
TEST(FastestVariant, IsASmallQuotaWhereTheLastLayerIsSlowAndALargeOneWhereTheOthersAre) {
  const Net& net = wide_dense_net();
  const auto quota = [&](double seconds, double last_seconds) {
    const CostTable costs = costs_of(net, seconds, last_seconds);
    StrategyInputs inputs = inputs_of(net, 4);
    inputs.costs = &costs;
    inputs.link = {1e7, 1e-6};
    return quota_of(chosen("fc_parallel", inputs).options);
  };
  EXPECT_EQ(quota(1e-2, 1e-6), 4);
  EXPECT_LT(quota(1e-6, 1e-2), 4);
}

TEST(FastestVariant, IsTheFastestOfAllPairs) {
  const Net net = small_net(12);
  for (const double bandwidth : {1e6, 1e9}) {
    const CostTable costs = costs_of(net, 1e-3);
    StrategyInputs inputs = inputs_of(net, 4);
    inputs.costs = &costs;
    inputs.link = {bandwidth, 1e-6};
    expect_fastest("hybrid", inputs);
  }
}

// Or a variant that could be the fastest would be passed over.
TEST(FastestVariant, TakesNoMoreForTheLeastThanWhatTheBusiestDeviceComputes) {
  const Net convolutions = small_net(13);
  for (const auto& [strategy, net] : {std::pair<std::string, const Net*>{"hybrid", &convolutions},
                                      {"fc_parallel", &convolutions},
                                      {"fc_parallel", &wide_dense_net()}}) {
    for (const int devices : {2, 3, 4}) {
      StrategyInputs inputs = inputs_of(*net, devices);
      const CostTable costs;  // a roofline, by which rows count
      inputs.costs = &costs;
      for (const StrategyVariant& variant : built_in_strategies().at(strategy).variants(inputs)) {
        inputs.options = variant.options;
        const Plan plan = build_plan(strategy, inputs);
        const double computes = bounds_of(*net, plan, costs, 1e9).compute;
        const double least = built_in_strategies().at(strategy).min_seconds(inputs);
        EXPECT_LE(least, computes * (1 + 1e-9)) << strategy << " " << variant.label;
        EXPECT_GT(least, 0.5 * computes) << strategy << " " << variant.label;
      }
      inputs.options = {};
    }
  }
}

TEST(FastestVariant, SaysWhatItChoseAmong) {
  const CostTable costs = costs_of(wide_dense_net(), 1e-3);
  StrategyInputs inputs = inputs_of(wide_dense_net(), 4);
  inputs.costs = &costs;
  const FastestVariant choice = chosen("fc_parallel", inputs);
  EXPECT_THAT(choice.note,
              AllOf(HasSubstr("the fastest on sim: --quota "), HasSubstr("--quota 1")));
}

// A round for each error piece of each layer: too many with --quota 1.
TEST(FastestVariant, SaysNothingOfVariantsThatCannotBe) {
  const CostTable costs = costs_of(wide_dense_net(), 1e-3);
  StrategyInputs inputs = inputs_of(wide_dense_net(), 8);
  inputs.costs = &costs;
  inputs.options["eager"] = true;
  const FastestVariant choice = chosen("fc_parallel", inputs);
  EXPECT_THAT(choice.note, HasSubstr("--quota 4"));
  int refused = 0;
  for (const StrategyVariant& variant : built_in_strategies().at("fc_parallel").variants(inputs)) {
    StrategyInputs one = inputs;
    one.options = variant.options;
    if (message_of([&] { (void)build_plan("fc_parallel", one); }).empty()) continue;
    ++refused;
    EXPECT_THAT(choice.note, testing::Not(HasSubstr(variant.label))) << choice.note;
  }
  EXPECT_GT(refused, 0);
}

TEST(FastestVariant, LeavesAloneWhatIsGivenOrNotOpen) {
  const CostTable costs = costs_of(wide_dense_net(), 1e-3);
  StrategyInputs inputs = inputs_of(wide_dense_net(), 4);
  inputs.costs = &costs;
  inputs.options["quota"] = 3;
  EXPECT_EQ(quota_of(chosen("fc_parallel", inputs).options), 3);
  EXPECT_EQ(chosen("fc_parallel", inputs).note, "");
  EXPECT_EQ(chosen("layerwise", inputs_of(wide_dense_net(), 4)).note, "");
}

// What is chosen by is what the backend takes.
TEST(FastestVariant, IsTimedAsTheBackendSimRunsIt) {
  const Net convolutions = small_net(13);
  for (const Strategy& strategy : built_in_strategies()) {
    for (const int devices : {1, 2, 4}) {
      for (const StrategyOptions& options : strategy.lossless_cases(devices)) {
        StrategyInputs inputs = inputs_of(convolutions, devices);
        const CostTable costs = costs_of(convolutions, 1e-3);
        inputs.costs = &costs;
        inputs.link = {1e8, 1e-6};
        inputs.options = options;
        const double backend = step_on_sim(strategy.name, inputs);
        EXPECT_NEAR(simulated_step_seconds(inputs, build_plan(strategy.name, inputs)), backend,
                    1e-9 * backend)
            << strategy.name << " " << to_text(strategy, options);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::test
