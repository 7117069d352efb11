// All ranks of the plans of every strategy, and of the testing plan, do what one process does.
#include <gtest/gtest.h>

#include "core/schedule/plan/dependencies.h"
#include "core/schedule/plan/recompute.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/rank_simulation.h"

namespace tandem::test {
namespace {

struct Split {
  int ranks, devices_each;
};

class EveryStrategyOnRanks : public testing::TestWithParam<Split> {};
INSTANTIATE_TEST_SUITE_P(Localize, EveryStrategyOnRanks,
                         testing::Values(Split{1, 2}, Split{2, 1}, Split{3, 1}, Split{2, 2}),
                         [](const auto& info) {
                           return fmt::format("{}_ranks_of_{}", info.param.ranks,
                                              info.param.devices_each);
                         });

TEST_P(EveryStrategyOnRanks, DoesWhatOneProcessDoes) {
  const Split split = GetParam();
  const int devices = split.ranks * split.devices_each;
  const DeviceRanks ranks = equal_ranks(split.ranks, split.devices_each);
  for (const bool normalized : {false, true}) {
    const Net net = normalized ? normalised_net(8) : small_net(8);
    for (const Strategy& strategy : built_in_strategies()) {
      for (const StrategyOptions& options : strategy.lossless_cases(devices)) {
        SCOPED_TRACE(strategy.name + " " + to_text(strategy, options));
        StrategyInputs inputs = inputs_of(net, devices);
        inputs.options = options;
        Plan plan;
        const std::string refusal = message_of([&] {
          plan = build_plan_without_waits(strategy.name, inputs);
          if (normalized) recompute_activations(plan, net, 0);
          derive_dependencies(plan);
        });
        if (!refusal.empty()) {
          EXPECT_TRUE(normalized) << refusal;
          continue;
        }
        expect_ranks_do_what_one_process_does(plan, ranks, 1);
        if (HasFatalFailure()) return;
      }
    }
    StrategyInputs inputs =
        inputs_of(normalized ? normalised_net(8, TANDEM_TEST) : small_net(8, TANDEM_TEST), devices);
    const Net testing = normalized ? normalised_net(8, TANDEM_TEST) : small_net(8, TANDEM_TEST);
    inputs.net = &testing;
    expect_ranks_do_what_one_process_does(build_testing_plan(inputs), ranks, 1);
  }
}

}  // namespace
}  // namespace tandem::test
