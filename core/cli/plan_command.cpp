#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/cli/commands.h"
#include "core/train/measure.h"
#include "core/train/safetensors.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct PlanArguments {
  NetArguments net;
  std::string devices = "sim:2", strategy = "two_phase", costs, dot, trace;
  StrategyOptions strategy_options;
  MachineArguments machine;
  bool tasks = true, as_json = false;
};

struct Sources {
  int measured = 0, estimated = 0;
};

Sources sources_of(const Net& net, const Plan& plan, const CostTable& costs) {
  Sources sources;
  for (const Task& task : plan.tasks) {
    if (cost_key(net, plan, task).empty()) continue;
    ++(costs.is_measured(net, plan, task) ? sources.measured : sources.estimated);
  }
  return sources;
}

int run_plan(PlanArguments& a) {
  Registry registry = Registry::with_defaults();
  const NetDefinition definition = a.net.definition();
  DeviceSpec devices = parse_devices(a.devices, registry.backends());
  Roofline roofline;
  if (devices.kind != "sim") {
    const Machine real(registry.backend(devices.kind), devices, MachineOptions{});
    roofline = roofline_of(real);
    devices.kind = "sim";
    for (int i = 0; i < devices.count(); ++i) devices.ordinals[static_cast<size_t>(i)] = i;
  }
  SessionOptions options;
  options.devices = fmt::format("sim:{}", devices.count());
  options.strategy = a.strategy;
  options.strategy_options = a.strategy_options;
  options.machine = a.machine.options();
  options.batch = a.net.batch_of(definition);
  options.data = a.net.data(definition);
  options.testing = false;
  options.costs = a.costs.empty() ? CostTable(roofline) : CostTable::read(a.costs, roofline);
  Session session(registry, definition, options);
  Phase& phase = session.training();
  const Measurement predicted = measure(session, 3, 5);
  const double alone = devices.count() > 1
                           ? step_seconds_without_communication(registry, definition, options, 3, 5)
                           : 0;
  const MemoryPlan memory = memory_with_kernels(registry, phase.net, phase.plan);
  const Sources sources = sources_of(phase.net, phase.plan, *options.costs);
  if (!a.dot.empty()) write_output(a.dot, to_dot(phase.plan));
  if (!a.trace.empty()) write_output(a.trace, to_chrome_trace(phase.plan, predicted.events));

  if (a.as_json) {
    json tree = {{"strategy", phase.plan.strategy},
                 {"devices", devices.count()},
                 {"batch", options.batch},
                 {"split", phase.plan.split_layer},
                 {"predicted_step_seconds", predicted.step_seconds},
                 {"without_communication_seconds", alone},
                 {"images_per_second", predicted.images_per_second},
                 {"measured_costs", sources.measured},
                 {"estimated_costs", sources.estimated},
                 {"notes", phase.plan.notes},
                 {"tasks", json::array()},
                 {"memory_bytes", json::array()}};
    for (const Task& task : phase.plan.tasks) {
      json entry = {{"label", task.label},
                    {"stage", to_string(task.stage)},
                    {"streams", json::array()},
                    {"after", json::array()}};
      for (const StreamId& id : task.streams) {
        entry["streams"].push_back({{"device", id.device}, {"stream", to_string(id.kind)}});
      }
      for (const Dependency& d : task.after) {
        entry["after"].push_back({{"task", phase.plan.tasks[static_cast<size_t>(d.task)].label},
                                  {"steps_back", d.steps_back}});
      }
      tree["tasks"].push_back(entry);
    }
    for (size_t d = 0; d < memory.persistent_bytes.size(); ++d) {
      tree["memory_bytes"].push_back(memory.persistent_bytes[d] + memory.transient_bytes[d]);
    }
    fmt::print("{}\n", tree.dump(2));
    return 0;
  }
  if (a.tasks) fmt::print("{}\n", to_text(phase.plan));
  fmt::print("{}", stage_table(predicted.stages));
  for (const std::string& note : phase.plan.notes) fmt::print("{}\n", note);
  fmt::print("\npredicted step: {}, {:.1f} images/s", human_seconds(predicted.step_seconds),
             predicted.images_per_second);
  if (alone > 0) {
    fmt::print("; exposed communication {} ({:.1f} %)",
               human_seconds(predicted.step_seconds - alone),
               100 * (predicted.step_seconds - alone) / predicted.step_seconds);
  }
  fmt::print(
      "\ncosts: {} tasks measured ({}), {} from a roofline of {:.0f} GFLOP/s and {:.0f} GB/s\n",
      sources.measured, a.costs.empty() ? "no --costs" : a.costs, sources.estimated,
      options.costs->roofline_.flops / 1e9, options.costs->roofline_.bandwidth / 1e9);
  for (size_t d = 0; d < memory.persistent_bytes.size(); ++d) {
    fmt::print(
        "memory of device {}: {} (weights and solver state {}, activations and buffers {})\n", d,
        human_bytes(memory.persistent_bytes[d] + memory.transient_bytes[d]),
        human_bytes(memory.persistent_bytes[d]), human_bytes(memory.transient_bytes[d]));
  }
  if (!a.dot.empty()) fmt::print("graph written to {} (dot -Tsvg)\n", a.dot);
  if (!a.trace.empty()) fmt::print("predicted timeline written to {}\n", a.trace);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto a = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan", "Show what a strategy would do and predict the step, without running it");
  add_net_options(*command, a->net);
  command->add_option("--devices", a->devices, "cpu:N or sim:N")->capture_default_str();
  command->add_option("--strategy", a->strategy, strategy_names())->capture_default_str();
  command->add_option("--costs", a->costs, "Measured costs (tandem profile --costs)");
  command->add_option("--dot", a->dot, "Write the graph in DOT");
  command->add_option("--trace", a->trace, "Write the predicted timeline (Chrome trace JSON)");
  command->add_flag("!--no-tasks", a->tasks, "Do not list the tasks");
  command->add_flag("--json", a->as_json, "Print JSON");
  add_strategy_options(*command, a->strategy_options);
  add_machine_options(*command, a->machine);
  command->callback([&action, a] { action = [a] { return run_plan(*a); }; });
}

}  // namespace tandem::cli
