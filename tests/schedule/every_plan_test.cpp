// What must hold for every plan of every strategy, in each of its cases, and for the testing plan.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "core/schedule/plan/dependencies.h"
#include "core/schedule/plan/recompute.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"
#include "tests/support/races.h"

namespace tandem::test {
namespace {

struct PlanCase {
  std::string strategy;  // or "testing"
  int devices = 1;
  StrategyOptions options{};
  bool normalized = false;  // a net that exchanges statistics of the batch
  bool clips = false;       // gradients, and adds them up over two micro-batches
  bool recomputes = false;  // activations

  [[nodiscard]] std::string name() const {
    std::string text = fmt::format("{}_on_{}", strategy, devices);
    const Strategy* known = built_in_strategies().find(strategy);
    const std::string given = known == nullptr ? "" : "_" + to_text(*known, options);
    for (const char c : given) {
      if (std::isalnum(c) != 0) text += c;
      if (c == ' ' || c == '_') text += '_';
    }
    return text + (normalized ? "_normalised" : "") + (clips ? "_clipped" : "") +
           (recomputes ? "_recomputed" : "");
  }
};

void PrintTo(const PlanCase& which, std::ostream* out) {
  *out << which.name();
}

const Net& net_of(const PlanCase& which) {
  static const Net training = small_net(9), testing = small_net(9, TANDEM_TEST);
  static const Net normalized = normalised_net(9), normalised_test = normalised_net(9, TANDEM_TEST);
  static const Net scaled = scaled_net(9);
  // Asymmetric refuses statistics of the batch.
  if (which.recomputes) return which.strategy == "asymmetric" ? training : scaled;
  const bool tests = which.strategy == "testing";
  return which.normalized ? (tests ? normalised_test : normalized) : (tests ? testing : training);
}

Plan plan_of_case(const PlanCase& which) {
  const Net& net = net_of(which);
  StrategyInputs inputs = inputs_of(net, which.devices);
  inputs.options = which.options;
  inputs.needs_norms = inputs.clips_gradients = which.clips;
  inputs.micro_batches_per_step = which.clips ? 2 : 1;
  if (which.strategy == "testing") return build_testing_plan(inputs);
  if (!which.recomputes) return build_plan(which.strategy, inputs);
  Plan plan = build_plan_without_waits(which.strategy, inputs);
  recompute_activations(plan, net_of(which), 0);
  derive_dependencies(plan);
  return plan;
}

struct Outcome {
  Plan plan;
  std::string refusal;
};

// Made once for all tests of a case.
const Outcome& outcome_of(const PlanCase& which) {
  static std::map<std::string, Outcome> known;
  const auto [at, is_new] = known.try_emplace(which.name());
  if (is_new) at->second.refusal = message_of([&] { at->second.plan = plan_of_case(which); });
  return at->second;
}

std::vector<PlanCase> plan_cases() {
  std::vector<PlanCase> result;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const bool normalized : {false, true}) {
      result.push_back({"testing", devices, {}, normalized});
    }
    for (const Strategy& strategy : built_in_strategies()) {
      for (const StrategyOptions& options : strategy.lossless_cases(devices)) {
        result.push_back({strategy.name, devices, options});
        result.push_back({strategy.name, devices, options, true, false});
        result.push_back({strategy.name, devices, options, false, true});
        result.push_back({strategy.name, devices, options, false, false, true});
      }
    }
  }
  return result;
}

class EveryPlan : public testing::TestWithParam<PlanCase> {
 protected:
  // Not every strategy can do with every net and rule; then no test has anything to look at.
  void SetUp() override {
    const std::string& refusal = outcome_of(GetParam()).refusal;
    if (refusal.empty()) return;
    EXPECT_TRUE(GetParam().normalized || GetParam().clips) << refusal;
    EXPECT_THAT(refusal, testing::AnyOf(testing::HasSubstr("mixes the samples of a batch"),
                                        testing::HasSubstr("the norms of whole gradients")));
  }
  // No tasks: refused.
  [[nodiscard]] static const Plan& plan() { return outcome_of(GetParam()).plan; }
};
INSTANTIATE_TEST_SUITE_P(Strategies, EveryPlan, testing::ValuesIn(plan_cases()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(EveryPlan, HasNoRace) {
  expect_no_race(plan());
}

TEST_P(EveryPlan, HasNoWaitThatCouldBeLeftOut) {
  if (plan().tasks.empty()) return;
  expect_each_wait_needed(plan());
}

TEST_P(EveryPlan, UpdatesAfterTheMicroBatchesThatItsRunAsksFor) {
  if (plan().tasks.empty() || GetParam().strategy == "testing") return;
  EXPECT_EQ(plan().micro_batches_per_step, GetParam().clips ? 2 : 1);
}

// Where a plan would take no less memory, none does.
TEST(EveryStrategy, RunsPassesAgainInSomeOfTheseCasesThatRecompute) {
  std::map<std::string, int> plans;
  for (const PlanCase& which : plan_cases()) {
    if (!which.recomputes) continue;
    const Plan plan = plan_of_case(which);
    plans[which.strategy] += std::any_of(plan.tasks.begin(), plan.tasks.end(), &repeats) ? 1 : 0;
  }
  EXPECT_EQ(plans.size(), 7U);
  for (const auto& [strategy, count] : plans) EXPECT_GT(count, 0) << strategy;
}

TEST_P(EveryPlan, ReadsNoTransientMemoryBeforeItIsWritten) {
  // norm3 has a running mean of 50 floats, and norm2 of the net to recompute two of 20.
  const bool has_states = GetParam().normalized || GetParam().recomputes;
  expect_written_before_read(plan(), has_states ? 64 + 256 : 64);
}

TEST_P(EveryPlan, TellsEveryDeviceThatUpdatesOfTheLoss) {
  expect_updates_know_of_the_loss(plan());
}

TEST_P(EveryPlan, ComputesOnTheComputeStreamsAndMovesOnTheOthers) {
  expect_passes_on_compute_streams_only(plan());
}

TEST_P(EveryPlan, GoesForwardOnceOverEachRowOfTheBatch) {
  std::vector<int> times(static_cast<size_t>(plan().batch), 0);
  for (const Task& task : plan().tasks) {
    const auto* pass = std::get_if<LayerWork>(&task.work);
    if (pass == nullptr || pass->pass != LayerPass::forward) continue;
    const PlanBinding& use = plan().bindings[size_t(pass->binding)];
    if (use.layer != 0) continue;
    for (int64_t row = use.rows.begin; row < use.rows.end; ++row) ++times[size_t(row)];
  }
  EXPECT_THAT(times, testing::Each(1));
}

// A run that goes on with what it has recorded has the same plan.
TEST_P(EveryPlan, IsMadeAgainByItsOwnOptions) {
  if (GetParam().strategy == "testing" || plan().tasks.empty()) return;
  PlanCase again = GetParam();
  again.options = plan().options;
  const Plan same = plan_of_case(again);
  EXPECT_EQ(same.options, plan().options);
  ASSERT_EQ(same.tasks.size(), plan().tasks.size());
  for (size_t i = 0; i < same.tasks.size(); ++i) {
    EXPECT_EQ(same.tasks[i].label, plan().tasks[i].label);
  }
}

}  // namespace
}  // namespace tandem::test
