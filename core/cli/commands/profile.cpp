#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "core/cli/progress.h"
#include "core/formats/safetensors.h"
#include "core/model/net/net_report.h"
#include "core/model/passes/build_net.h"
#include "core/ranks/ranks.h"
#include "core/run/setup/program_options.h"
#include "core/schedule/cost/costs_of_net.h"
#include "core/schedule/strategies/data_parallel/alexnet_like.h"
#include "core/schedule/strategies/data_parallel/two_phase.h"
#include "core/session/choose_strategy.h"
#include "core/session/measure.h"
#include "core/session/measuring_ranks.h"

namespace tandem::cli {
namespace {

struct ProfileArguments {
  NetChoice net;
  std::string devices = default_kind, strategy, precision = "float32", costs, paced, trace, pixels;
  StrategyOptions strategy_options;
  GraphUse graphs = GraphUse::automatic;
  DeviceOptions machine;
  int steps = 5, warm_up = 2;
  bool without_communication = true, as_json = false, tune = false, recomputes = false;
  ChoiceBy chooses_by = ChoiceBy::measurement;
};

struct LayerRow {
  std::string name, type;
  double seconds[3] = {0, 0, 0};  // forward, backward_data, backward_weights
  tandem_layer_cost cost{};
  int64_t weights = 0;
  std::string fused{};      // "fused into conv1", whose kernel does its forward pass
  std::string algorithm{};  // of its kernel on the first device that has one; "": it names none
};

std::vector<LayerRow> layer_rows(Session& session, const CostTable& costs) {
  static constexpr LayerPass passes[3] = {LayerPass::forward, LayerPass::backward_data,
                                          LayerPass::backward_weights};
  const Net& net = session.training().net;
  std::vector<LayerRow> rows;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    LayerRow row{layer.name, layer.type->name, {}, {}, 0};
    auto measured_rows = double(net.batch);
    for (int pass = 0; pass < 3; ++pass) {
      const int32_t fused =
          passes[pass] == LayerPass::forward ? layer.activation : int32_t{TANDEM_ACTIVATION_NONE};
      const MeasuredCost* cost = costs.find_pass(net, int(i), passes[pass], fused);
      if (cost == nullptr) continue;
      row.seconds[pass] = cost->seconds;
      if (cost->rows > 0) measured_rows = cost->rows;
    }
    const double whole_rows = std::ceil(measured_rows);
    row.cost = net.cost(int(i), int64_t(whole_rows));
    for (double* flops : {&row.cost.forward_flops, &row.cost.backward_data_flops,
                          &row.cost.backward_weights_flops}) {
      *flops *= measured_rows / whole_rows;
    }
    for (const int weight : layer.weights) row.weights += net.weights[size_t(weight)].count;
    if (row.seconds[0] <= 0) row.fused = fusion_text(net, layer.fused_into);
    rows.push_back(row);
  }
  const std::vector<PlanBinding>& bindings = session.training().plan.bindings;
  for (size_t i = 0; session.training().kernels && i < bindings.size(); ++i) {
    std::string& algorithm = rows[size_t(bindings[i].layer)].algorithm;
    if (algorithm.empty()) {
      algorithm = session.training().kernels->algorithm(int(i));
    }
  }
  return rows;
}

void print_layers(const std::vector<LayerRow>& rows) {
  say("{:<22} {:<16} {:>11} {:>17} {:>17} {:>9}\n", "layer", "type", "forward", "backward data",
      "backward weights", "weights");
  const auto cell = [](double seconds, double flops) {
    if (seconds <= 0) return std::string("-");
    const std::string rate = flops > 1e6 ? fmt::format(" {:.0f} GF/s", flops / seconds / 1e9) : "";
    return fmt::format("{:.2f} ms{}", seconds * 1e3, rate);
  };
  for (const LayerRow& row : rows) {
    print_names("{:<22} {:<16} {:>18} {:>18} {:>18} {:>9}\n", row.name, row.type,
                row.fused.empty() ? cell(row.seconds[0], row.cost.forward_flops) : row.fused,
                cell(row.seconds[1], row.cost.backward_data_flops),
                cell(row.seconds[2], row.cost.backward_weights_flops),
                row.weights > 0 ? fmt::format("{}", row.weights) : "");
  }
}

// What was measured of a session, without what it took to measure it.
struct Profiled {
  int ranks = 1;
  Measurement measured;
  std::vector<LayerRow> rows;
  Plan plan;  // of all ranks
  AlexNetTest alexnet;
  std::string tuned, message_path;
  double alone = 0;  // seconds of a step without copies between devices; 0: not measured
};

// Of all ranks, whose clocks agree to within this.
std::string devices_text(const ProfileArguments& arguments, const Measurement& m) {
  if (!m.of_ranks) return arguments.devices;
  double uncertainty = 0;
  for (const TraceRank& rank : m.of_ranks->ranks) {
    uncertainty = std::max(uncertainty, rank.uncertainty);
  }
  return fmt::format("{} ranks of {}, on the clock of rank 0 within {}", m.of_ranks->ranks.size(),
                     arguments.devices, human_seconds(uncertainty));
}

void print_step(const ProfileArguments& arguments, const Profiled& profiled) {
  const Measurement& m = profiled.measured;
  const StepParts& p = m.parts;
  const Plan& plan = profiled.plan;
  say("\nstages of one step ({} on {}), ms:\n{}", arguments.strategy, devices_text(arguments, m),
      stage_table(m.stages));
  say("\nstep: {} (from {} to {}), {:.1f} images/s\n", human_seconds(m.step_seconds),
      human_seconds(m.fastest), human_seconds(m.slowest), m.images_per_second);
  if (m.live_step_seconds > 0) {
    say("as captured graphs; issued task by task, as for the tables, it takes {}\n",
        human_seconds(m.live_step_seconds));
  }
  if (!m.graphs_given_up.empty()) {
    say("task by task, not as captured graphs: {}\n", m.graphs_given_up);
  }
  if (!plan.split_layer.empty()) {
    say("a = forward {}, b = backward_fc {}, c = backward_conv {}, m = FC gradients {}, n = conv "
        "gradients {}\n",
        human_seconds(p.forward), human_seconds(p.backward_fc), human_seconds(p.backward_conv),
        human_seconds(p.fc_gradients), human_seconds(p.conv_gradients));
    say("a + b + max(c, m) + n (+ plain broadcast) = {}\n",
        human_seconds(p.two_phase(two_phase_options().read(plan.options).hidden_broadcast)));
  }
  if (const double alone = profiled.alone; alone > 0) {
    say("exposed communication: {} of {} ({:.1f} %): the step without copies between devices takes "
        "{}\n",
        human_seconds(std::max(0.0, m.step_seconds - alone)), human_seconds(m.step_seconds),
        100 * std::max(0.0, m.step_seconds - alone) / m.step_seconds, human_seconds(alone));
  }
  if (!plan.split_layer.empty()) print_names("FC part from layer '{}' on\n", plan.split_layer);
}

// Measures a session, and writes its costs and its timeline. The options get what the session
// decides, so that it is the same without communication. `a` gets the strategy that is chosen.
Profiled measure_session(ProfileArguments& a, Registry& registry, const NetDefinition& definition,
                         SessionOptions& options) {
  Profiled result;
  const bool tries_first = is_auto(options);
  if (tries_first) {
    const std::string table = choose_strategy(registry, definition, options, "", a.chooses_by);
    if (!a.as_json) say("{}\n\n", table);
    a.strategy = options.strategy;
  }
  Session session(registry, definition, options);
  options.strategy_options = session.options().strategy_options;
  options.training_pixels = session.training().pixels;
  Measurement& measured = result.measured =
      measure(session, a.warm_up, a.steps, fmt::format("measuring steps of {}", options.strategy));
  // Then steps ran before those measured here.
  if (tries_first && a.chooses_by == ChoiceBy::measurement) measured.first_step_at = 0;
  options.tuning = session.options().tuning;
  result.tuned = tuning_text(options.tuning, {}, session.machine().kind());
  result.message_path = session.message_path();
  result.plan = session.training().whole_plan();
  const Plan& own = session.training().plan;
  const CostTable costs = costs_of(session, session.training().net, own, measured.events);
  result.rows = layer_rows(session, costs);
  result.alexnet = test_alexnet_like(session.training().net, costs,
                                     threshold_options().read(a.strategy_options));
  if (options.ranks != nullptr && options.ranks->rank() > 0) return result;
  if (!a.trace.empty()) {
    write_output(a.trace, to_chrome_trace(measured.shown_plan(own), measured.shown_events(), {},
                                          measured.shown_ranks()));
  }
  if (!a.costs.empty()) {
    const tandem_device_info info = session.machine().device_info(0);
    costs.write(a.costs, {fmt::format("net {} batch {} devices {} strategy {} precision {}",
                                      a.net.net, options.batch, a.devices, a.strategy, a.precision),
                          fmt::format("{}, {} cores a device", info.name, info.threads)});
  }
  return result;
}

json profile_json(const ProfileArguments& a, const SessionOptions& options,
                  const Profiled& profiled) {
  const Measurement& m = profiled.measured;
  json tree = {{"net", a.net.net},
               {"devices", a.devices},
               {"ranks", profiled.ranks},
               {"strategy", a.strategy},
               {"precision", a.precision},
               {"pixels", pixels_word(options)},
               {"batch", options.batch},
               {"step_seconds", m.step_seconds},
               {"images_per_second", m.images_per_second},
               {"without_communication_seconds", profiled.alone},
               {"parts",
                {{"a", m.parts.forward},
                 {"b", m.parts.backward_fc},
                 {"c", m.parts.backward_conv},
                 {"m", m.parts.fc_gradients},
                 {"n", m.parts.conv_gradients},
                 {"broadcast", m.parts.broadcast}}},
               {"split", profiled.plan.split_layer},
               {"alexnet_like", profiled.alexnet.alexnet_like},
               {"tune", a.tune},
               {"recompute", a.recomputes},
               {"peak_memory_bytes", peak_memory_bytes()},
               {"layers", json::array()}};
  if (m.live_step_seconds > 0) tree["task_by_task_seconds"] = m.live_step_seconds;
  if (!profiled.message_path.empty()) tree["message_path"] = profiled.message_path;
  if (!m.graphs_given_up.empty()) tree["graphs_given_up"] = m.graphs_given_up;
  if (m.first_step_at > 0) tree["first_step_at_seconds"] = m.first_step_at;
  for (const LayerRow& row : profiled.rows) {
    tree["layers"].push_back({{"name", row.name},
                              {"type", row.type},
                              {"forward_seconds", row.seconds[0]},
                              {"backward_data_seconds", row.seconds[1]},
                              {"backward_weights_seconds", row.seconds[2]},
                              {"weights", row.weights},
                              {"algorithm", row.algorithm}});
    if (!row.fused.empty()) tree["layers"].back()["forward"] = row.fused;
  }
  return tree;
}

void print_profile(const ProfileArguments& a, const SessionOptions& options,
                   const Profiled& profiled) {
  if (!profiled.message_path.empty()) say("{}\n\n", profiled.message_path);
  if (a.tune) say("{}\n\n", profiled.tuned);
  if (a.recomputes) say("{}\n\n", profiled.plan.recomputation);
  print_layers(profiled.rows);
  print_step(a, profiled);
  say("{}", pixels_text(a.pixels, options));
  print_names("{}\n", profiled.alexnet.explanation);
  const double first_step_at = profiled.measured.first_step_at;
  if (first_step_at > 0) {
    say("first step issued {} after the program's start; ", human_seconds(first_step_at));
  }
  say("peak memory: {}\n", human_bytes(peak_memory_bytes()));
  if (!a.costs.empty()) say("costs written to {}\n", a.costs);
  if (!a.trace.empty())
    say("timeline written to {} (open it in ui.perfetto.dev or chrome://tracing)\n", a.trace);
}

int measure_and_print(ProfileArguments& a, Registry& registry, const NetDefinition& definition,
                      SessionOptions& options) {
  Profiled profiled = measure_session(a, registry, definition, options);
  if (options.ranks != nullptr) profiled.ranks = options.ranks->size();
  const int devices = profiled.ranks * parse_devices(a.devices, registry).count();
  const bool is_stopped = profiled.measured.steps < a.steps;
  if (a.without_communication && devices > 1 && !is_stopped) {
    profiled.alone = step_seconds_without_communication(registry, definition, options,
                                                        profiled.plan, a.warm_up, a.steps);
  }
  if (options.ranks != nullptr && options.ranks->rank() > 0) return 0;
  if (a.as_json) return print_json(profile_json(a, options, profiled));
  if (const std::string limits = core_limits(options.ranks); !limits.empty()) say("{}\n", limits);
  print_profile(a, options, profiled);
  if (!is_stopped) return 0;
  say("stopped after {} of {} measured steps\n", profiled.measured.steps, a.steps);
  return stopped_code;
}

int run_profile(ProfileArguments& a, const Command& command) {
  constexpr double watchdog_seconds = 600;  // for other ranks
  Registry registry = Registry::with_defaults();
  if (a.strategy.empty()) {
    const int devices = launched_ranks() > 1 ? 1 : parse_devices(a.devices, registry).count();
    a.strategy = default_strategy(devices, a.strategy_options);
    a.chooses_by = ChoiceBy::forecast;
  }
  // The AlexNet-like test depends on the net alone and is shown with every strategy.
  require_strategy_options(command, a.strategy, threshold_options().options());
  if (a.steps < 1) throw error("--steps {}: there must be at least 1", a.steps);
  if (a.warm_up < 1) throw error("--warm-up {}: there must be at least 1", a.warm_up);
  const NetDefinition definition = a.net.definition();
  SessionOptions options;
  options.devices = a.devices;
  options.precision = parse_precision(a.precision);
  options.strategy = a.strategy;
  options.strategy_options = built_in_strategies().options_of(a.strategy, a.strategy_options);
  options.machine = machine_options(a.machine);
  options.batch = a.net.batch_of(definition);
  options.data = a.net.data(definition);
  options.testing = false;
  const std::string kind = parse_devices(a.devices, registry).kind;
  choose_made_up_pixels(a.pixels, prefers_bytes(registry.backend(kind)), options);
  options.tuning.measures = a.tune;
  options.recomputes = a.recomputes;
  options.executor.graphs = a.graphs;
  if (launched_ranks() == 1) options.watch = watch_work();
  options.rule.momentum = 0.9F;
  options.rule.weight_decay = 0.0005F;
  if (!a.paced.empty()) {
    options.machine.paced = true;
    options.costs = CostTable::read(a.paced, Roofline{}, a.precision);
    const Net net = build_net(definition, registry,
                              {TANDEM_TRAIN, options.batch, options.data, kind, options.precision});
    take_costs_of(a.net.net, definition, net, a.paced, *options.costs);
  }
  const std::unique_ptr<Communicator> ranks =
      open_measuring_ranks(registry, watchdog_seconds, command.given_values(), options);
  return as_rank(ranks.get(), [&] { return measure_and_print(a, registry, definition, options); });
}

}  // namespace

void add_profile(CommandLine& line) {
  Command& command =
      line.add("profile", "Run some steps on synthetic data and show where the time goes");
  ProfileArguments& a = command.runs(run_profile);
  add_net_options(command, a.net);
  command.add({
      devices_option(a.devices),
      strategy_option(
          {"auto"}, a.strategy,
          "The strategy; auto: the fastest (default: by forecast the fastest on 2 to 64 devices "
          "of one process, else two_phase)"),
      precision_option(a.precision),
      pixels_option(a.pixels, "bytes where the devices have memory of their own, else floats"),
      {"--steps N", &a.steps, "Steps to measure", show_default},
      {"--warm-up N", &a.warm_up, "Steps before them", show_default},
      {"--costs FILE", &a.costs,
       "Write the measured costs to this file, for 'tandem plan' and --paced"},
      {"--paced FILE", &a.paced,
       "Pace the run: compute takes the times of this cost file and is not done"},
      {"--trace FILE", &a.trace, "Write the timeline (Chrome trace JSON)"},
      {"--no-communication-check", [&a] { a.without_communication = false; },
       "Do not run a second time without copies between devices"},
      json_option(a.as_json),
      tune_option(a.tune),
      recompute_option([&a] { a.recomputes = true; }),
      graphs_option(a.graphs),
  });
  add_strategy_options(command, a.strategy_options);
  add_device_options(command, a.machine);
}

}  // namespace tandem::cli
