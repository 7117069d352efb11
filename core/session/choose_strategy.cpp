#include "core/session/choose_strategy.h"

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/device/topology.h"

namespace tandem {
namespace {

// Costs and, if neither link nor topology is given, the link.
void measure_sequential(Registry& registry, const NetDefinition& definition,
                        SessionOptions& options) {
  SessionOptions plain = options;
  plain.strategy = "sequential";
  plain.strategy_options = {};
  const LinkSpec link = measure_costs(registry, definition, plain, 3, options);
  const bool is_explicit =
      options.machine.topology != nullptr || options.machine.link.bandwidth > 0;
  if (!is_explicit) options.machine.link = link;
}

}  // namespace

bool is_auto(const SessionOptions& options) {
  return options.strategy == "auto";
}

std::string default_strategy(int devices, const StrategyOptions& given) {
  constexpr int many = 64;
  return devices > 1 && devices <= many && given.empty() ? "auto" : "two_phase";
}

std::string forecast_line(const ForecastList& list) {
  const Forecast& best = fastest(list);
  std::string other;
  for (const Forecast& forecast : list.forecasts) {
    if (!forecast.refusal.empty() || !forecast.fits || forecast.strategy == "mixed") continue;
    if (best.strategy == "mixed") {
      other = fmt::format(" (the best published one, {}: {})", forecast.name,
                          human_seconds(forecast.step_seconds()));
    }
    break;
  }
  return fmt::format("strategy {}: {} a step by {} costs{}; --strategy NAME takes another",
                     best.name, human_seconds(best.step_seconds()),
                     list.measured_costs > 0 ? "measured" : "estimated", other);
}

std::string choose_strategy(Registry& registry, const NetDefinition& definition,
                            SessionOptions& options, const std::string& own_devices, ChoiceBy by) {
  const DeviceSpec devices = parse_devices(options.devices, registry);
  SessionOptions simulated = options;
  const bool is_measured = options.costs && !options.costs->empty();
  const tandem_backend& backend = registry.backend(devices.kind);
  const bool computes = !has_virtual_time(backend);
  if (!is_measured && computes && by == ChoiceBy::measurement) {
    measure_sequential(registry, definition, simulated);
  }
  ForecastOptions how;
  {
    MachineOptions opened;
    if (own_devices.empty()) opened.topology = options.machine.topology;  // which must be of them
    const Machine machine(
        backend, own_devices.empty() ? devices : parse_devices(own_devices, registry), opened);
    how.available_bytes = machine.device_info(0).available_bytes;
    how.is_shared_memory = machine.is_host_addressable();
    if (!simulated.costs) simulated.costs.emplace(roofline_of(machine));
  }
  const ForecastList list = forecast_strategies(registry, definition, simulated, how);
  const Forecast& best = fastest(list);
  if (list.is_stopped()) {
    throw error(
        "--strategy auto: stopped after {} of {} forecasts; the fastest so far is {} ({} a step)",
        list.forecasts.size(), list.wanted, best.name, human_seconds(best.step_seconds()));
  }
  options.strategy = best.strategy;
  options.strategy_options = best.plan.options;  // costs measured anew would choose others
  options.costs = simulated.costs;
  options.tuning = simulated.tuning;
  options.machine.topology = simulated.machine.topology;
  if (by == ChoiceBy::forecast) return forecast_line(list);
  const LinkSpec& link = simulated.machine.link;
  const std::string speeds =
      simulated.machine.topology != nullptr ? source_text(*simulated.machine.topology)
      : link.bandwidth > 0 ? fmt::format("links of {:.2f} GB/s", link.bandwidth / 1e9)
                           : "links as sim takes them to be";
  return fmt::format(
      "strategy auto, simulated with {} measured and {} estimated costs and {}:\n{}chosen: {}",
      list.measured_costs, list.estimated_costs, speeds, forecast_table(list), best.name);
}

}  // namespace tandem
