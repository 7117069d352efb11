// Which of its plans the strategy `asymmetric` takes, and in which order their tasks stand: by the
// times that the costs and links give them.
#include <algorithm>
#include <utility>

#include "core/schedule/cost/bounds.h"
#include "core/schedule/cost/list_schedule.h"
#include "core/schedule/strategies/asymmetric/asymmetric.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

namespace {

struct Candidate {
  Plan plan;
  double bound = 0;  // seconds that no order of its tasks can pass
};

std::vector<Candidate> candidates(const StrategyInputs& inputs) {
  std::vector<Division> divisions{Division::slices, Division::slices_of_large, Division::whole};
  if (const auto told = given_division(inputs)) divisions = {*told};
  std::vector<Candidate> result;
  for (const AsymmetricGroups& groups : asymmetric_groups(inputs)) {
    // One device of W has all of each layer, however they are divided.
    const size_t ways = groups.weights.size() > 1 ? divisions.size() : 1;
    for (size_t way = 0; way < ways; ++way) {
      Candidate candidate{asymmetric_plan(inputs, groups, divisions[way])};
      candidate.bound = bounds_of(*inputs.net, candidate.plan, *inputs.costs, inputs.link.bandwidth,
                                  inputs.topology)
                            .step();
      result.push_back(std::move(candidate));
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
  return result;
}

// Fewer for a large plan, whose attempts take longer: as many as together play so many tasks.
int attempts(const Plan& plan, size_t played, int most) {
  return std::clamp(static_cast<int>(played / (plan.tasks.size() + 1)), 1, most);
}
int quick_attempts(const Plan& plan) {
  return attempts(plan, 8000, 6);
}
int thorough_attempts(const Plan& plan) {
  return attempts(plan, 30000, 30);
}

}  // namespace

Plan build_asymmetric(const StrategyInputs& inputs) {
  std::vector<Candidate> all = candidates(inputs);
  const auto model_of = [&](const Plan& plan) {
    return StepModel(*inputs.net, plan, *inputs.costs, inputs.link, inputs.topology);
  };
  struct Tried {
    Candidate* of;
    OrderedStep step;
  };
  const auto is_faster = [](const Tried& a, const Tried& b) {
    return a.step.times.step_seconds < b.step.times.step_seconds;
  };
  constexpr size_t most_tried = 6;  // of many groups: those with the smallest bounds
  std::vector<Tried> tried;         // fastest first
  for (Candidate& candidate : all) {
    if (tried.size() == most_tried) break;
    if (!tried.empty() && candidate.bound >= tried.front().step.times.step_seconds) break;
    tried.push_back({&candidate, list_schedule(model_of(candidate.plan),
                                               quick_attempts(candidate.plan), candidate.bound)});
    std::stable_sort(tried.begin(), tried.end(), is_faster);
  }
  if (tried.size() > 2) tried.resize(2);
  for (Tried& close : tried) {
    const Plan& plan = close.of->plan;
    if (close.of->bound >= tried.front().step.times.step_seconds) continue;
    close.step = list_schedule(model_of(plan), thorough_attempts(plan), close.of->bound);
  }
  const Tried& best = *std::min_element(tried.begin(), tried.end(), is_faster);
  reorder(best.of->plan, best.step.order);
  return std::move(best.of->plan);
}

}  // namespace tandem
