#include "core/cli/net_costs.h"

#include <fmt/format.h>

#include "core/session/forecast.h"

namespace tandem::cli {

std::string flops_text(double flops) {
  if (flops >= 1e9) return fmt::format("{:.2f} G", flops / 1e9);
  if (flops >= 1e6) return fmt::format("{:.2f} M", flops / 1e6);
  return flops > 0 ? fmt::format("{:.2f} k", flops / 1e3) : "-";
}

int64_t training_memory(Registry& registry, const NetDefinition& definition,
                        const NetOptions& options, const DeviceSpec& kernels,
                        std::string* refusal) {
  SessionOptions session;
  session.devices = simulated_devices(1);
  session.kernels = kernels.kind;
  session.strategy = "sequential";
  session.batch = options.batch;
  session.data = options.data;
  session.precision = options.precision;
  session.testing = false;
  session.rule.states = 1;
  Session planned(registry, definition, session);
  Phase& phase = planned.training();
  const MemoryPlan memory = memory_on(registry, kernels, phase.net, phase.plan, refusal);
  return memory.persistent_bytes[0] + memory.transient_bytes[0];
}

}  // namespace tandem::cli
