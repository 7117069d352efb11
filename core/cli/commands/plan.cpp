#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "core/cli/plan_report.h"
#include "core/cli/progress.h"
#include "core/device/topology.h"
#include "core/formats/safetensors.h"
#include "core/model/passes/build_net.h"
#include "core/ranks/rank_links.h"
#include "core/run/setup/program_options.h"
#include "core/schedule/cost/costs_of_net.h"
#include "core/schedule/cost/topology_file.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/report/svg.h"
#include "core/session/choose_strategy.h"
#include "include/tandem/train.h"
#include "plugins/simulation.h"

namespace tandem::cli {
namespace {

struct PlanArguments {
  NetChoice net;
  std::string devices = simulated_devices(2), strategy, precision = "float32", costs, dot, trace,
              svg, pixels;
  StrategyOptions strategy_options;
  DeviceOptions machine;
  std::optional<double> flops;  // with the bandwidth: instead of costs that were not measured
  std::string memory_bandwidth;
  double variation = 0, device_variation = 0;
  uint64_t variation_seed = 1;
  int64_t batch_per_device = 0;
  int hosts = 0;        // 0: not given
  std::string network;  // the links between hosts
  bool tasks = true, as_json = false, recomputes = false, devices_given = false;
};

// Which devices are planned for, where the user has not said it.
std::string default_devices_text(const PlanArguments& a) {
  if (a.devices_given) return "";
  return fmt::format("devices {}, the default: --devices sim:8 or cpu:2 plans for others\n",
                     a.devices);
}

// What is planned: the arguments, what they name, and the options of a session for them.
struct Planning {
  const PlanArguments& a;
  Registry registry = Registry::with_defaults();
  NetDefinition definition = a.net.definition();
  ForecastOptions how{};
  SessionOptions options{};
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
CostTable measured_costs(const Planning& p, const Roofline& roofline) {
  const std::string& file = p.a.costs;
  if (file.empty()) return CostTable(roofline);
  CostTable costs = CostTable::read(file, roofline, p.a.precision);
  const SessionOptions& o = p.options;
  const Net net =
      build_net(p.definition, p.registry, {TANDEM_TRAIN, o.batch, o.data, o.kernels, o.precision});
  take_costs_of(p.a.net.net, p.definition, net, file, costs);
  return costs;
}

void set_roofline(const PlanArguments& a, Roofline& roofline) {
  if (a.flops && !(std::isfinite(*a.flops) && *a.flops > 0)) {
    throw error("--flops {}: a finite number above 0 of operations a second, e.g. 4.3e12",
                *a.flops);
  }
  roofline.flops = a.flops.value_or(roofline.flops);
  if (a.memory_bandwidth.empty()) return;
  roofline.bandwidth = parse_bandwidth(a.memory_bandwidth, "--memory-bandwidth");
}

// Sets the options of a session on simulated devices.
void set_options(Planning& p) {
  const PlanArguments& a = p.a;
  ForecastOptions& how = p.how;
  SessionOptions& options = p.options;
  const DeviceSpec devices = parse_devices(a.devices, p.registry);
  options.precision = parse_precision(a.precision);
  how.kernel_devices = kernel_devices(p.registry, a.devices, options.precision);
  Roofline roofline;
  MachineOptions& machine = options.machine;
  machine = machine_options(a.machine);
  divide_among_hosts(a, devices.count(), machine);
  const tandem_backend& backend = p.registry.backend(devices.kind);
  const bool is_simulated = has_virtual_time(backend);
  if (!is_simulated) {
    const Machine real(backend, devices, MachineOptions{});
    roofline = roofline_of(real);
    how.available_bytes = real.device_info(0).available_bytes;
    how.is_shared_memory = real.is_host_addressable();
    const bool is_explicit = machine.topology != nullptr || machine.link.bandwidth > 0;
    if (!is_explicit) machine.topology = find_topology(real);
  }
  set_roofline(a, roofline);
  for (const auto& [name, deviation] :
       {std::pair("--variation", a.variation), {"--device-variation", a.device_variation}}) {
    if (deviation >= 0 && deviation <= 10) continue;
    throw error("{} {}: a standard deviation from 0 to 10, as 0.1", name, deviation);
  }
  if (a.batch_per_device > max_batch_images / devices.count()) {
    throw error("--batch-per-device {} on {} devices: too large; the global batch is at most {}",
                a.batch_per_device, devices.count(), max_batch_images);
  }
  options.devices = simulated_devices(devices.count());
  options.kernels = how.kernel_devices->kind;
  options.strategy = a.strategy;
  options.strategy_options = a.strategy_options;
  options.recomputes = a.recomputes;
  options.batch =
      a.batch_per_device > 0 ? a.batch_per_device * devices.count() : a.net.batch_of(p.definition);
  options.data = a.net.data(p.definition);
  options.testing = false;
  options.models_large_plans = true;
  options.costs = measured_costs(p, roofline);
  // Simulated devices use the form of the devices that they stand for, or that were measured.
  const bool were_bytes = is_simulated && options.costs->find("convert") != nullptr;
  choose_made_up_pixels(
      a.pixels, prefers_bytes(p.registry.backend(how.kernel_devices->kind)) || were_bytes, options);
  options.executor.variation = a.variation;
  options.executor.device_variation = a.device_variation;
  options.executor.variation_seed = a.variation_seed;
  how.batch_per_device = a.batch_per_device;
  // With variation a few steps are not enough for an average.
  if (options.executor.varies()) how.steps = 40;
}

std::string costs_text(const Planning& p, int measured, int estimated) {
  const Roofline& roofline = p.options.costs->roofline();
  return fmt::format(
      "costs: {} tasks measured ({}), {} from a roofline of {:.0f} GFLOP/s and {:.0f} GB/s\n",
      measured, p.a.costs.empty() ? "no --costs" : p.a.costs, estimated, roofline.flops / 1e9,
      roofline.bandwidth / 1e9);
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

// Writes what --trace, --svg and --dot ask for. The files have the name of the strategy in theirs
// if it is not "".
void write_files(const PlanArguments& a, const std::string& strategy, Plan& plan,
                 const std::vector<TraceEvent>& events) {
  const auto write = [&](const std::string& file, const auto& text) {
    if (file.empty()) return;
    write_output(strategy.empty() ? file : file_of_strategy(file, strategy), text());
  };
  write(a.trace, [&] { return to_chrome_trace(plan, events); });
  write(a.svg, [&] { return to_svg(plan, events); });
  write(a.dot, [&] {
    add_missing_waits(plan);
    return to_dot(plan);
  });
}

int run_all(Planning& p) {
  const PlanArguments& a = p.a;
  p.how.inspect = [&a](Forecast& forecast) {
    write_files(a, forecast.name, forecast.plan, forecast.measured.events);
  };
  const ForecastList list = forecast_strategies(p.registry, p.definition, p.options, p.how);
  const int code = list.is_stopped() ? stopped_code : 0;
  if (a.as_json) {
    json tree = to_json(list);
    tree["pixels"] = pixels_word(p.options);
    (void)print_json(tree);
    return code;
  }
  say("{}", default_devices_text(a));
  print_names("net {} on {} devices, batch {}{}\n\n{}", a.net.net, list.devices, list.batch,
              a.batch_per_device > 0 ? fmt::format(" ({} a device)", a.batch_per_device) : "",
              forecast_table(list));
  for (const Forecast& forecast : list.forecasts) {
    if (forecast.strategy != "mixed" || !forecast.refusal.empty()) continue;
    print_names("mixed: {}\n", fmt::join(forecast.plan.notes, "; "));
  }
  say("{}{}{}{}", costs_text(p, list.measured_costs, list.estimated_costs),
      links_text(p.options.machine), pixels_text(a.pixels, p.options),
      missing_memory_text(*p.how.kernel_devices, list.kernels_refusal));
  return code;
}

// Replaces the strategy `auto` by the fastest. By default one line says which that is. False:
// stopped.
bool choose_fastest(Planning& p, bool is_default) {
  const ForecastList list = forecast_strategies(p.registry, p.definition, p.options, p.how);
  const Forecast& best = fastest(list);
  p.options.strategy = best.strategy;
  p.options.strategy_options = best.options;
  if (p.a.as_json) return !list.is_stopped();
  if (is_default && !list.is_stopped()) {
    print_names("{}\n\n", forecast_line(list));
    return true;
  }
  print_names("{}{} {}\n\n", forecast_table(list),
              list.is_stopped() ? "the fastest so far:" : "chosen:", best.name);
  return !list.is_stopped();
}

// What is predicted of the session's plan. The options get the strategy's as it chose them.
PlannedStep predict_step(Planning& p, Session& session) {
  SessionOptions& options = p.options;
  options.strategy_options = session.options().strategy_options;
  Phase& phase = session.training();
  const Topology* topology = options.machine.topology.get();
  PlannedStep step;
  step.devices = parse_devices(options.devices, p.registry).count();
  // First, because kernels and the records of simulated steps take much memory.
  step.memory = memory_on(p.registry, *p.how.kernel_devices, phase.net, phase.plan, &step.refusal);
  const SimulatedSteps amount = simulated_steps(phase.plan, p.how.steps, options.executor.varies());
  step.predicted = measure(session, amount.warm_up, amount.measured);
  if (step.predicted.without_communication_seconds) {
    step.alone = *step.predicted.without_communication_seconds;
  } else if (step.devices > 1) {
    step.alone = step_seconds_without_communication(p.registry, p.definition, options, phase.plan,
                                                    amount.warm_up, amount.measured);
  }
  step.sources = sources_of(phase.net, phase.plan, *options.costs);
  step.bounds =
      bounds_of(phase.net, phase.plan, *options.costs, options.machine.link.bandwidth, topology);
  if (phase.model == nullptr) {
    phase.model = std::make_unique<StepModel>(phase.net, phase.plan, *options.costs,
                                              options.machine.link, topology);
  }
  step.chain = chain_bound(*phase.model, phase.plan);
  phase.model.reset();
  return step;
}

void print_plan(const Planning& p, const Plan& plan, const PlannedStep& step) {
  const PlanArguments& a = p.a;
  const double seconds = step.predicted.step_seconds;
  say("{}", default_devices_text(a));
  if (a.tasks) print_names("{}\n", to_text(plan));
  say("{}", stage_table(step.predicted.stages));
  for (const std::string& note : plan.notes) print_names("{}\n", note);
  if (a.recomputes) say("{}\n", plan.recomputation);
  say("\npredicted step: {}, {:.1f} images/s", human_seconds(seconds),
      step.predicted.images_per_second);
  if (step.alone > 0) {
    say("; exposed communication {} ({:.1f} %)", human_seconds(seconds - step.alone),
        100 * (seconds - step.alone) / seconds);
  }
  print_names("\n{}{}{}{}{}{}", bounds_text(step.bounds, step.chain, seconds),
              costs_text(p, step.sources.measured, step.sources.estimated),
              links_text(p.options.machine), pixels_text(a.pixels, p.options),
              memory_text(step.memory), missing_memory_text(*p.how.kernel_devices, step.refusal));
  if (!a.dot.empty()) say("graph written to {} (dot -Tsvg)\n", a.dot);
  if (!a.trace.empty()) say("predicted timeline written to {}\n", a.trace);
  if (!a.svg.empty()) say("drawn timeline written to {}\n", a.svg);
}

int run_plan(PlanArguments& a, const Command& command) {
  a.devices_given = command.given("--devices");
  Planning p{a};
  const bool is_default = a.strategy.empty();
  if (is_default) {
    a.strategy = default_strategy(parse_devices(a.devices, p.registry).count(), a.strategy_options);
  }
  require_strategy_options(command, a.strategy);
  set_options(p);
  p.options.watch = watch_work();
  if (a.strategy == "all") return run_all(p);
  if (a.strategy == "auto" && !choose_fastest(p, is_default)) return stopped_code;
  Session session(p.registry, p.definition, p.options);
  const PlannedStep step = predict_step(p, session);
  Plan& plan = session.training().plan;
  if (a.as_json || a.tasks) add_missing_waits(plan);
  write_files(a, "", plan, step.predicted.events);
  if (a.as_json) {
    json tree = to_json(step, plan);
    tree["batch"] = p.options.batch;
    tree["pixels"] = pixels_word(p.options);
    return print_json(tree);
  }
  print_plan(p, plan, step);
  return 0;
}

}  // namespace

void add_plan(CommandLine& line) {
  Command& command =
      line.add("plan", "Show what a strategy does and predict its step, without running it");
  PlanArguments& a = command.runs(run_plan);
  add_net_options(command, a.net);
  command.add({
      {"--devices DEVICES", &a.devices, "Devices to plan for, e.g. sim:8 or cpu:2", show_default},
      strategy_option({"auto", "all"}, a.strategy,
                      "The strategy; auto: the fastest; all: a table of all (default: auto on 2 to "
                      "64 devices, else two_phase)"),
      precision_option(a.precision),
      pixels_option(a.pixels,
                    "bytes where the devices, or those that sim stands for, have memory of their "
                    "own, or where the costs are of bytes; else floats"),
      {"--costs FILE", &a.costs, "Measured costs (of 'tandem profile --costs')"},
      {"--dot FILE", &a.dot, "Write the graph in DOT"},
      {"--trace FILE", &a.trace, "Write the predicted timeline (Chrome trace JSON)"},
      {"--svg FILE", &a.svg, "Write the predicted timeline as a picture"},
      {"--variation X", &a.variation,
       "Let every task's time vary from step to step, with this standard deviation as a share of "
       "it, e.g. 0.1"},
      {"--device-variation X", &a.device_variation,
       "Let all tasks of a device vary together from step to step, as --variation does one by one"},
      {"--variation-seed N", &a.variation_seed, "Seed of both variations", show_default},
      {"--batch-per-device N", &a.batch_per_device,
       "Images per device, instead of --batch; the one device to compare with takes as many",
       in_range(1, max_batch_images)},
      {"--hosts N", &a.hosts,
       "Hosts that the devices are divided among: --link is the speed of copies in a host, "
       "--network that between hosts"},
      {"--network SPEED", &a.network,
       "Speed of copies between hosts, e.g. bandwidth=12.5GB/s,latency=5us; what a host sends "
       "shares it, and so does what it receives"},
      {"--flops N", &a.flops,
       "Roofline for costs that were not measured: float operations per second of a device, e.g. "
       "4.3e12"},
      {"--memory-bandwidth SPEED", &a.memory_bandwidth,
       "Roofline: bandwidth of a device's memory, e.g. 200GB/s"},
      {"--no-tasks", [&a] { a.tasks = false; }, "Do not list the tasks"},
      json_option(a.as_json),
      recompute_option([&a] { a.recomputes = true; }),
  });
  add_strategy_options(command, a.strategy_options);
  add_device_options(command, a.machine);
}

}  // namespace tandem::cli
