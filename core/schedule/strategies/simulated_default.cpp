#include "core/schedule/strategies/simulated_default.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/plugin/registry.h"
#include "core/schedule/execution/executor.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {
namespace {

const Strategy* find_strategy(const std::string& name) {
  for (const Strategy& strategy : strategies()) {
    if (strategy.name == name) return &strategy;
  }
  return nullptr;
}

struct Trial {
  bool is_possible = false;
  std::optional<double> seconds;  // of a step; nothing if it cannot be less than the best one's
};

class Simulator {
 public:
  Simulator(const Registry& registry, const StrategyInputs& inputs,
            std::shared_ptr<const Topology> topology, const UpdateRule& rule)
      : inputs_(inputs), rule_(rule), backend_(registry.backend(simulator_kind)) {
    // Every step has an update.
    inputs_.batches_per_update = 1;
    rule_.batches = 1;
    machine_.link = inputs.link;
    machine_.topology = std::move(topology);
    devices_ = parse_devices(simulated_devices(inputs.devices), registry);
  }

  Trial trial(const Strategy& strategy, const StrategyOptions& options, double best) {
    inputs_.options = options;
    try {
      if (best > 0 && least_seconds(strategy) >= best) return {true, std::nullopt};
      return {true, simulated(build_plan(strategy.name, inputs_))};
    } catch (const Error&) {
      return {false, std::nullopt};
    }
  }

 private:
  // On the fastest of the devices.
  double least_seconds(const Strategy& strategy) const {
    double speed = 1;
    if (machine_.topology != nullptr) {
      for (const double one : machine_.topology->speeds) speed = std::max(speed, one);
    }
    return strategy.least_seconds(inputs_) / speed;
  }
  // With the steps before and after it under way.
  double simulated(const Plan& plan) {
    constexpr int64_t warm_up = 2, steps = 3;
    const MemoryPlan memory = plan_memory(plan);
    Machine machine(backend_, devices_, machine_);
    Runtime runtime(machine);
    runtime.reserve(plan, memory, inputs_.net->batch);
    ExecutorOptions how;
    if (machine_.topology != nullptr) how.speeds = machine_.topology->speeds;
    Executor executor(plan, memory, *inputs_.net, runtime, nullptr, inputs_.costs, rule_, how);
    const int batch = plan.find_buffer(buffers::batch, TANDEM_HOST);
    std::byte address{};  // sim copies nothing
    double begin = 0, end = 0;
    const auto take_end = [&](int64_t step) {
      executor.wait(step);
      for (const TraceEvent& event : executor.trace(step)) end = std::max(end, event.end);
      if (step == warm_up - 1) begin = end;
    };
    for (int64_t step = 0; step < warm_up + steps; ++step) {
      executor.issue(step, {{batch, &address}});
      if (step > 0) take_end(step - 1);
    }
    take_end(warm_up + steps - 1);
    return (end - begin) / steps;
  }

  StrategyInputs inputs_;
  UpdateRule rule_;
  const tandem_backend& backend_;
  MachineOptions machine_;
  DeviceSpec devices_;
};

}  // namespace

SimulatedDefault simulated_default(const Registry& registry, const std::string& strategy,
                                   const StrategyInputs& inputs,
                                   const std::shared_ptr<const Topology>& topology,
                                   const UpdateRule& rule) {
  SimulatedDefault result{inputs.options, ""};
  const Strategy* known = find_strategy(strategy);
  if (known == nullptr || known->least_seconds == nullptr) return result;
  const std::vector<StrategyVariant> variants = known->variants(inputs);
  const std::vector<std::string> backends = registry.backends();
  const bool can_simulate =
      std::find(backends.begin(), backends.end(), simulator_kind) != backends.end();
  if (variants.size() < 2 || !can_simulate) return result;
  Simulator simulator(registry, inputs, topology, rule);
  double best = 0;
  std::string chosen, others;
  for (const StrategyVariant& variant : variants) {
    const auto [is_possible, seconds] = simulator.trial(*known, variant.options, best);
    if (!is_possible) continue;
    const std::string name = variant.label + (seconds ? " " + human_seconds(*seconds) : " slower");
    if (seconds && (best == 0 || *seconds < best)) {
      if (best > 0) others += (others.empty() ? "" : ", ") + chosen;
      best = *seconds;
      result.options = variant.options;
      chosen = name;
    } else {
      others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!others.empty())
    result.note = fmt::format("the fastest on sim: {} a step ({})", chosen, others);
  return result;
}

}  // namespace tandem
