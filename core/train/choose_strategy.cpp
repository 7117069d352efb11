#include "core/train/choose_strategy.h"

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/device/find_topology.h"

namespace tandem {

namespace {

// Costs and, if neither link nor topology is given, the link.
void measure_costs(Registry& registry, const NetDefinition& definition, SessionOptions& options) {
  constexpr int warm_up = 1, steps = 3;
  SessionOptions plain = options;
  plain.strategy = "sequential";
  plain.strategy_options = {};
  plain.rule.micro_batches = 1;
  plain.testing = false;
  plain.executor.trace = true;
  plain.executor.graphs = GraphUse::off;
  Session session(registry, definition, plain);
  const Measurement measured = measure(session, warm_up, steps);
  const Plan& plan = session.training().plan;
  options.costs = costs_of(session, session.training().net, plan, measured.events);
  options.tuning = session.options().tuning;
  options.machine.topology = session.options().machine.topology;
  const bool is_explicit =
      options.machine.topology != nullptr || options.machine.link.bandwidth > 0;
  if (!is_explicit) options.machine.link = link_of(plan, measured.events);
}

}  // namespace

bool is_auto(const SessionOptions& options) {
  return options.strategy == "auto";
}

std::string choose_strategy(Registry& registry, const NetDefinition& definition,
                            SessionOptions& options) {
  const DeviceSpec devices = parse_devices(options.devices, registry);
  SessionOptions priced = options;
  const bool is_measured = options.costs && !options.costs->empty();
  const tandem_backend& backend = registry.backend(devices.kind);
  const bool computes = (backend.capabilities & TANDEM_VIRTUAL_TIME) == 0;
  if (!is_measured && computes) measure_costs(registry, definition, priced);
  PriceOptions how;
  {
    const Machine machine(backend, devices, MachineOptions{});
    how.available_bytes = machine.device_info(0).available_bytes;
    how.is_shared_memory = machine.has(TANDEM_HOST_ADDRESSABLE);
    if (!priced.costs) priced.costs.emplace(roofline_of(machine));
  }
  const PriceList list = price_strategies(registry, definition, priced, how);
  const Price& best = fastest(list);
  options.strategy = best.strategy;
  options.strategy_options = best.plan.options;  // costs measured anew would choose others
  options.costs = priced.costs;
  options.tuning = priced.tuning;
  options.machine.topology = priced.machine.topology;
  const LinkSpec& link = priced.machine.link;
  const std::string speeds =
      priced.machine.topology != nullptr ? source_text(*priced.machine.topology)
      : link.bandwidth > 0               ? fmt::format("links of {:.2f} GB/s", link.bandwidth / 1e9)
                                         : "links as sim takes them to be";
  return fmt::format(
      "strategy auto, priced on sim by {} measured and {} estimated costs and {}:\n{}chosen: {}",
      list.measured_costs, list.estimated_costs, speeds, price_table(list), best.name);
}

}  // namespace tandem
