// The batch of a run by the memory of its devices, from the plan of a training step: nothing is
// allocated or computed.
#include <algorithm>

#include "core/base/error.h"
#include "core/device/machine.h"
#include "core/device/parse.h"
#include "core/model/passes/build_net.h"
#include "core/run/setup/recipe.h"
#include "core/schedule/strategies/common/fastest_variant.h"
#include "core/session/forecast.h"

namespace tandem {
namespace {

constexpr double usable_share = 0.8;

DeviceSpec devices_of(const Registry& registry, const TrainSetup& setup) {
  const std::string& devices = setup.record.options.devices;
  return parse_devices(devices.empty() ? default_kind : devices, registry);
}

// Of each device, or of all of them if they share one memory.
int64_t memory_of(const MemoryPlan& memory, bool is_shared) {
  int64_t most = 0, all = memory.prefetched_bytes;
  for (size_t i = 0; i < memory.persistent_bytes.size(); ++i) {
    const int64_t bytes = memory.persistent_bytes[i] + memory.transient_bytes[i];
    most = std::max(most, bytes);
    all += bytes;
  }
  return is_shared ? all : most;
}

class StepMemory {
 public:
  StepMemory(Registry& registry, const TrainSetup& setup)
      : registry_(registry), setup_(setup), devices_(devices_of(registry, setup)) {}

  [[nodiscard]] bool fits(int64_t batch, int64_t available) const {
    const TrainOptions& chosen = setup_.record.options;
    NetOptions options;
    options.phase = TANDEM_TRAIN;
    options.batch = batch;
    options.data = setup_.record.data;
    options.device_kind = devices_.kind;
    if (!chosen.precision.empty()) options.precision = parse_precision(chosen.precision);
    const Net net = build_net(setup_.net, registry_, options);
    // The strategies of data parallelism keep the same tensors, and this one plans only once.
    const bool is_other =
        !chosen.strategy.empty() && chosen.strategy != "auto" && chosen.strategy != "two_phase";
    const std::string strategy = is_other ? chosen.strategy : "layerwise";
    const CostTable costs{Roofline{}};
    StrategyInputs inputs;
    inputs.net = &net;
    inputs.devices = devices_.count();
    inputs.costs = &costs;
    inputs.topology = setup_.record.machine.topology.get();
    inputs.solver_states = make_update_rule(setup_.solver).states;
    inputs.recomputes = chosen.recompute.value_or(false);
    if (is_other) {
      inputs.options = setup_.strategies->options_of(strategy, chosen.strategy_options);
      inputs.options = fastest_variant(setup_.strategies->at(strategy), inputs).options;
    }
    Plan plan = build_plan(strategy, inputs, *setup_.strategies);
    const bool is_shared = is_host_addressable(registry_.backend(devices_.kind));
    const double usable = usable_share * static_cast<double>(available);
    const auto tensors = static_cast<double>(memory_of(plan_memory(plan), is_shared));
    if (tensors > usable) return false;
    // To ask the kernels what they keep takes a while, and it is seldom as much as the tensors.
    if (2 * tensors <= usable) return true;
    const MemoryPlan whole = memory_on(registry_, devices_, net, plan);
    return static_cast<double>(memory_of(whole, is_shared)) <= usable;
  }

 private:
  Registry& registry_;
  const TrainSetup& setup_;
  DeviceSpec devices_;
};

}  // namespace

int64_t available_memory(const Registry& registry, const TrainSetup& setup) {
  const DeviceSpec devices = devices_of(registry, setup);
  const tandem_backend& backend = registry.backend(devices.kind);
  int64_t least = 0;
  for (const int32_t ordinal : devices.ordinals) {
    tandem_device_info info{};
    info.struct_size = sizeof info;
    if (backend.describe(ordinal, &info) != TANDEM_OK) return 0;
    least = least == 0 ? info.available_bytes : std::min(least, info.available_bytes);
  }
  return least;
}

int64_t batch_in_memory(Registry& registry, const TrainSetup& setup, int64_t batch,
                        int64_t min_batch, int64_t available) {
  if (available <= 0) return batch;
  try {
    const StepMemory memory(registry, setup);
    int64_t fitting = batch;
    while (fitting / 2 >= min_batch && !memory.fits(fitting, available)) fitting /= 2;
    return fitting;
  } catch (const Error&) {  // the run itself says why
    return batch;
  }
}

}  // namespace tandem
