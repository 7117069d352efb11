#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/arguments.h"
#include "core/cli/commands.h"
#include "core/cli/plan_report.h"
#include "core/cli/print.h"
#include "core/cli/strategy_arguments.h"
#include "core/device/topology.h"
#include "core/formats/safetensors.h"
#include "core/model/passes/build_net.h"
#include "core/ranks/rank_links.h"
#include "core/run/setup/device_options.h"
#include "core/schedule/cost/costs_of_net.h"
#include "core/schedule/cost/topology_file.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/report/svg.h"
#include "core/session/forecast.h"
#include "include/tandem/train.h"
#include "plugins/simulation.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct PlanArguments {
  NetChoice net;
  std::string devices = simulated_devices(2), strategy = "two_phase", precision = "float32", costs,
              dot, trace, svg, pixels;
  StrategyOptions strategy_options;
  DeviceOptions machine;
  RooflineArguments roofline;
  double variation = 0;
  uint64_t variation_seed = 1;
  int64_t batch_per_device = 0;
  int hosts = 0;        // 0: not given
  std::string network;  // the links between hosts
  bool tasks = true, as_json = false, recomputes = false;
};

// Replaces the links by those of devices that are divided among hosts.
void divide_among_hosts(const PlanArguments& a, int devices, MachineOptions& machine) {
  if (a.hosts == 0 && a.network.empty()) return;
  if (a.hosts == 0) throw error("--network {} needs --hosts: the number of hosts", a.network);
  if (a.network.empty()) {
    throw error(
        "--hosts {} needs --network, the speed of copies between them: "
        "--network bandwidth=12.5GB/s,latency=5us",
        a.hosts);
  }
  if (machine.topology != nullptr) {
    throw error("--hosts {} and --topology {}: both define the links; give one of them", a.hosts,
                a.machine.topology);
  }
  if (a.hosts < 1 || devices % a.hosts != 0) {
    throw error("--hosts {}: {} devices cannot be divided among them equally", a.hosts, devices);
  }
  const LinkSpec network = parse_link(a.network), within = machine.link;
  RankLinks links;
  for (int host = 0; host < a.hosts; ++host) {
    links.host_of_rank.push_back(host);
    links.hosts.push_back(fmt::format("host{}", host));
    links.within.emplace_back();
    links.to_first.emplace_back();
    if (host > 0) links.to_first.back() = LinkSpeed{network.bandwidth, network.latency};
  }
  links.copies = LinkSpeed{within.bandwidth > 0 ? within.bandwidth : timing::default_link_bandwidth,
                           within.latency};
  machine.link = {};
  machine.topology = std::make_shared<Topology>(
      parse_topology(rank_topology_text(links, devices / a.hosts),
                     fmt::format("of {} hosts of {} devices, {} between them", a.hosts,
                                 devices / a.hosts, a.network)));
}

// What was measured of the net; the roofline estimates the rest.
CostTable measured_costs(const PlanArguments& a, const Registry& registry,
                         const NetDefinition& definition, const Roofline& roofline,
                         const SessionOptions& options) {
  if (a.costs.empty()) return CostTable(roofline);
  CostTable costs = CostTable::read(a.costs, roofline, a.precision);
  const Net net =
      build_net(definition, registry,
                {TANDEM_TRAIN, options.batch, options.data, options.kernels, options.precision});
  take_costs_of(a.net.net, definition, net, a.costs, costs);
  return costs;
}

// The options of a session on simulated devices for these arguments.
SessionOptions session_options(const PlanArguments& a, const Registry& registry,
                               const NetDefinition& definition, ForecastOptions& how) {
  const DeviceSpec devices = parse_devices(a.devices, registry);
  const int32_t precision = parse_precision(a.precision);
  how.kernel_devices = kernel_devices(registry, a.devices, precision);
  Roofline roofline;
  MachineOptions machine = machine_options(a.machine);
  divide_among_hosts(a, devices.count(), machine);
  const tandem_backend& backend = registry.backend(devices.kind);
  const bool is_simulated = has_virtual_time(backend);
  if (!is_simulated) {
    const Machine real(backend, devices, MachineOptions{});
    roofline = roofline_of(real);
    how.available_bytes = real.device_info(0).available_bytes;
    how.is_shared_memory = real.is_host_addressable();
    const bool is_explicit = machine.topology != nullptr || machine.link.bandwidth > 0;
    if (!is_explicit) machine.topology = find_topology(real);
  }
  a.roofline.apply(roofline);
  if (!(a.variation >= 0 && a.variation <= 10)) {
    throw error("--variation {}: a standard deviation from 0 to 10, as 0.1", a.variation);
  }
  if (a.batch_per_device > most_batch_images / devices.count()) {
    throw error("--batch-per-device {} on {} devices: too large; the global batch is at most {}",
                a.batch_per_device, devices.count(), most_batch_images);
  }
  SessionOptions options;
  options.devices = simulated_devices(devices.count());
  options.kernels = how.kernel_devices->kind;
  options.precision = precision;
  options.strategy = a.strategy;
  options.strategy_options = a.strategy_options;
  options.machine = machine;
  options.recomputes = a.recomputes;
  options.batch =
      a.batch_per_device > 0 ? a.batch_per_device * devices.count() : a.net.batch_of(definition);
  options.data = a.net.data(definition);
  options.testing = false;
  options.models_large_plans = true;
  options.costs = measured_costs(a, registry, definition, roofline, options);
  // Simulated devices use the form of the devices that they stand for, or that were measured.
  const bool were_bytes = is_simulated && options.costs->find("convert") != nullptr;
  choose_made_up_pixels(
      a.pixels, prefers_bytes(registry.backend(how.kernel_devices->kind)) || were_bytes, options);
  options.executor.variation = a.variation;
  options.executor.variation_seed = a.variation_seed;
  how.batch_per_device = a.batch_per_device;
  // With variation a few steps are not enough for an average.
  if (a.variation > 0) how.steps = 40;
  return options;
}

std::string costs_text(const PlanArguments& a, const CostTable& costs, int measured,
                       int estimated) {
  return fmt::format(
      "costs: {} tasks measured ({}), {} from a roofline of {:.0f} GFLOP/s and {:.0f} GB/s\n",
      measured, a.costs.empty() ? "no --costs" : a.costs, estimated, costs.roofline().flops / 1e9,
      costs.roofline().bandwidth / 1e9);
}

// `refusal`: of the kernels that were asked for it, memory_on()'s.
std::string missing_memory_text(const DeviceSpec& kernels, const std::string& refusal) {
  if (!kernels.ordinals.empty() && refusal.empty()) return "";
  return fmt::format("memory is without what the kernels of {} devices keep beside tensors{}{}\n",
                     kernels.kind, refusal.empty() ? "" : ": ", refusal);
}

// Those of a large plan are not derived before they are shown.
void add_missing_waits(Plan& plan) {
  const auto waits = [](const Task& task) { return !task.after.empty(); };
  if (std::none_of(plan.tasks.begin(), plan.tasks.end(), waits)) derive_dependencies(plan);
}

int run_all(const PlanArguments& a, Registry& registry, const NetDefinition& definition,
            const SessionOptions& options, ForecastOptions how) {
  how.inspect = [&a](Forecast& forecast) {
    const std::vector<TraceEvent>& events = forecast.measured.events;
    if (!a.trace.empty())
      write_output(file_of_strategy(a.trace, forecast.name),
                   to_chrome_trace(forecast.plan, events));
    if (!a.svg.empty())
      write_output(file_of_strategy(a.svg, forecast.name), to_svg(forecast.plan, events));
    if (a.dot.empty()) return;
    add_missing_waits(forecast.plan);
    write_output(file_of_strategy(a.dot, forecast.name), to_dot(forecast.plan));
  };
  const ForecastList list = forecast_strategies(registry, definition, options, how);
  if (a.as_json) {
    json tree = {{"devices", list.devices},
                 {"batch", list.batch},
                 {"pixels", pixels_word(options)},
                 {"one_device_step_seconds", list.one_device_seconds},
                 {"one_device_batch", list.one_device_batch},
                 {"measured_costs", list.measured_costs},
                 {"estimated_costs", list.estimated_costs},
                 {"strategies", json::array()}};
    for (const Forecast& forecast : list.forecasts) tree["strategies"].push_back(to_json(forecast));
    print_json(tree);
    return 0;
  }
  print_names("net {} on {} devices, batch {}{}\n\n{}", a.net.net, list.devices, list.batch,
              a.batch_per_device > 0 ? fmt::format(" ({} a device)", a.batch_per_device) : "",
              forecast_table(list));
  say("{}{}{}{}", costs_text(a, *options.costs, list.measured_costs, list.estimated_costs),
      links_text(options.machine), pixels_text(a.pixels, options),
      missing_memory_text(*how.kernel_devices, list.kernels_refusal));
  return 0;
}

int run_plan(PlanArguments& a, const Command& command) {
  require_strategy_options(command, a.strategy);
  Registry registry = Registry::with_defaults();
  const NetDefinition definition = a.net.definition();
  ForecastOptions how;
  SessionOptions options = session_options(a, registry, definition, how);
  if (a.strategy == "all") return run_all(a, registry, definition, options, how);
  if (a.strategy == "auto") {
    const ForecastList list = forecast_strategies(registry, definition, options, how);
    const Forecast& best = fastest(list);
    options.strategy = best.strategy;
    options.strategy_options = best.options;
    if (!a.as_json) print_names("{}chosen: {}\n\n", forecast_table(list), best.name);
  }
  const int device_count = parse_devices(options.devices, registry).count();
  Session session(registry, definition, options);
  options.strategy_options = session.options().strategy_options;
  Phase& phase = session.training();
  // First, because kernels and the records of simulated steps take much memory.
  std::string refusal;
  const MemoryPlan memory =
      memory_on(registry, *how.kernel_devices, phase.net, phase.plan, &refusal);
  const SimulatedSteps amount = simulated_steps(phase.plan, how.steps, a.variation > 0);
  const Measurement predicted = measure(session, amount.warm_up, amount.measured);
  double alone = 0;
  if (predicted.without_communication_seconds) {
    alone = *predicted.without_communication_seconds;
  } else if (device_count > 1) {
    alone = step_seconds_without_communication(registry, definition, options, phase.plan,
                                               amount.warm_up, amount.measured);
  }
  const CostSources sources = sources_of(phase.net, phase.plan, *options.costs);
  const StepBounds bounds =
      bounds_of(phase.net, phase.plan, *options.costs, options.machine.link.bandwidth,
                options.machine.topology.get());
  if (phase.model == nullptr) {
    phase.model = std::make_unique<StepModel>(phase.net, phase.plan, *options.costs,
                                              options.machine.link, options.machine.topology.get());
  }
  const ChainBound chain = chain_bound(*phase.model, phase.plan);
  phase.model.reset();
  if (a.as_json || a.tasks || !a.dot.empty()) add_missing_waits(phase.plan);
  if (!a.dot.empty()) write_output(a.dot, to_dot(phase.plan));
  if (!a.trace.empty()) write_output(a.trace, to_chrome_trace(phase.plan, predicted.events));
  if (!a.svg.empty()) write_output(a.svg, to_svg(phase.plan, predicted.events));

  if (a.as_json) {
    json tree = {{"strategy", phase.plan.strategy},
                 {"devices", device_count},
                 {"batch", options.batch},
                 {"pixels", pixels_word(options)},
                 {"split", phase.plan.split_layer},
                 {"predicted_step_seconds", predicted.step_seconds},
                 {"without_communication_seconds", alone},
                 {"bound_seconds",
                  {{"compute", bounds.compute}, {"link", bounds.link}, {"chain", chain.seconds}}},
                 {"images_per_second", predicted.images_per_second},
                 {"measured_costs", sources.measured},
                 {"estimated_costs", sources.estimated},
                 {"notes", phase.plan.notes},
                 {"tasks", tasks_json(phase.plan)},
                 {"memory_bytes", json::array()}};
    for (size_t d = 0; d < memory.persistent_bytes.size(); ++d) {
      tree["memory_bytes"].push_back(memory.persistent_bytes[d] + memory.transient_bytes[d]);
    }
    print_json(tree);
    return 0;
  }
  if (a.tasks) print_names("{}\n", to_text(phase.plan));
  say("{}", stage_table(predicted.stages));
  for (const std::string& note : phase.plan.notes) print_names("{}\n", note);
  if (a.recomputes) say("{}\n", phase.plan.recomputation);
  say("\npredicted step: {}, {:.1f} images/s", human_seconds(predicted.step_seconds),
      predicted.images_per_second);
  if (alone > 0) {
    say("; exposed communication {} ({:.1f} %)", human_seconds(predicted.step_seconds - alone),
        100 * (predicted.step_seconds - alone) / predicted.step_seconds);
  }
  print_names("\n{}{}{}{}", bounds_text(bounds, chain, predicted.step_seconds),
              costs_text(a, *options.costs, sources.measured, sources.estimated),
              links_text(options.machine), pixels_text(a.pixels, options));
  say("{}", memory_text(memory));
  say("{}", missing_memory_text(*how.kernel_devices, refusal));
  if (!a.dot.empty()) say("graph written to {} (dot -Tsvg)\n", a.dot);
  if (!a.trace.empty()) say("predicted timeline written to {}\n", a.trace);
  if (!a.svg.empty()) say("drawn timeline written to {}\n", a.svg);
  return 0;
}

}  // namespace

void add_plan(CommandLine& line) {
  auto arguments = std::make_shared<PlanArguments>();
  PlanArguments& a = *arguments;
  Command& command =
      line.add("plan", "Show what a strategy does and predict its step, without running it");
  add_net_options(command, a.net);
  command.option("--devices DEVICES", &a.devices, "Devices to plan for, e.g. sim:8 or cpu:2")
      .show_default();
  command
      .option(strategy_option({"auto", "all"}), &a.strategy,
              "The strategy; auto: the fastest; all: a table of all")
      .show_default();
  add_precision_option(command, a.precision);
  add_pixels_option(command, a.pixels,
                    "bytes where the devices, or those that sim stands for, have memory of their "
                    "own, or where the costs are of bytes; else floats");
  command.option("--costs FILE", &a.costs, "Measured costs (of 'tandem profile --costs')");
  command.option("--dot FILE", &a.dot, "Write the graph in DOT");
  command.option("--trace FILE", &a.trace, "Write the predicted timeline (Chrome trace JSON)");
  command.option("--svg FILE", &a.svg, "Write the predicted timeline as a picture");
  command.option("--variation X", &a.variation,
                 "Let every task's time vary from step to step, with this standard deviation as a "
                 "share of it, e.g. 0.1");
  command.option("--variation-seed N", &a.variation_seed, "Seed of that variation").show_default();
  command
      .option("--batch-per-device N", &a.batch_per_device,
              "Images per device, instead of --batch; the one device to compare with takes as many")
      .range(1, most_batch_images);
  command.option("--hosts N", &a.hosts,
                 "Hosts that the devices are divided among: --link is the speed of copies in a "
                 "host, --network that between hosts");
  command.option("--network SPEED", &a.network,
                 "Speed of copies between hosts, e.g. bandwidth=12.5GB/s,latency=5us; what a host "
                 "sends shares it, and so does what it receives");
  add_roofline_options(command, a.roofline);
  command.flag("--no-tasks", a.tasks, "Do not list the tasks", false);
  add_json_option(command, a.as_json);
  add_recompute_option(command, [&a] { a.recomputes = true; });
  add_strategy_options(command, a.strategy_options);
  add_device_options(command, a.machine);
  command.action([arguments, &command] { return run_plan(*arguments, command); });
}

}  // namespace tandem::cli
