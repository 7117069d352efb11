#include "examples/alexnet/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/base/strings.h"
#include "core/schedule/report/report.h"
#include "core/schedule/report/svg.h"
#include "core/schedule/strategies/strategy_options.h"
#include "core/train/safetensors.h"

namespace alexnet {
namespace {

using namespace tandem;

// When the stages of one step began and ended, over all devices.
struct StepTimes {
  std::map<Stage, double> begins, ends;
  double latest_forward = 0;  // when the last device began its forward

  [[nodiscard]] double end_of(Stage stage) const {
    const auto found = ends.find(stage);
    return found == ends.end() ? 0 : found->second;
  }
};

std::map<int64_t, StepTimes> step_times(const Plan& plan, const std::vector<TraceEvent>& events) {
  std::map<int64_t, StepTimes> steps;
  std::map<std::pair<int64_t, int>, double> forwards;  // by step and device
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks[static_cast<size_t>(event.task)];
    StepTimes& step = steps[event.step];
    const auto begin = step.begins.emplace(task.stage, event.start).first;
    begin->second = std::min(begin->second, event.start);
    step.ends[task.stage] = std::max(step.ends[task.stage], event.end);
    if (task.stage != Stage::forward) continue;
    const std::pair key(event.step, task.streams.front().device);
    const auto forward = forwards.emplace(key, event.start).first;
    forward->second = std::min(forward->second, event.start);
  }
  for (const auto& [key, start] : forwards) {
    StepTimes& step = steps[key.first];
    step.latest_forward = std::max(step.latest_forward, start);
  }
  return steps;
}

void write_costs(Session& session, const CostTable& costs, const Options& options) {
  const tandem_device_info info = session.machine().device_info(0);
  costs.write(options.write_costs,
              {fmt::format("net alexnet batch {} devices {} strategy {} precision {}",
                           options.batch, options.devices, options.strategy, options.precision),
               fmt::format("{}, {} cores a device", info.name, info.threads)});
}

void print_parts(const PipelineReport& report) {
  const StepParts& p = report.chosen.parts;
  const auto ms = [](double seconds) { return fmt::format("{:9.2f} ms", seconds * 1e3); };
  fmt::print("\n  a  forward                      {}\n", ms(p.forward));
  fmt::print("  b  backward of the FC part      {}\n", ms(p.backward_fc));
  fmt::print("  c  backward of the conv part    {}\n", ms(p.backward_conv));
  fmt::print("  m  FC gradients and update      {}\n", ms(p.fc_gradients));
  fmt::print("  n  conv gradients and update    {}\n", ms(p.conv_gradients));
  fmt::print("     broadcast, in all            {}\n", ms(p.broadcast));
  fmt::print("     broadcast, exposed           {}\n", ms(report.exposed_broadcast));
}

// Only of these is it known what their parts add up to.
bool has_master(const Options& options) {
  return options.strategy == "two_phase" || options.strategy == "sequential";
}

// The chosen strategy's step by its parts, beside what was measured.
void print_formula(const PipelineReport& report, const Options& options) {
  if (!has_master(options)) return;
  const StepParts& p = report.chosen.parts;
  const bool overlapped = options.strategy == "two_phase";
  const double expected =
      overlapped ? p.two_phase(true) + report.exposed_broadcast : p.sequential();
  const double step = report.chosen.step_seconds;
  fmt::print(
      "{:<40} {:9.2f} ms  (the step is {:+.1f} % of it away)\n",
      overlapped ? "a + b + max(c, m) + n + exposed broadcast" : "a + b + c + m + n + broadcast",
      expected * 1e3, 100 * (step - expected) / expected);
}

void print_comparisons(const PipelineReport& report, const Options& options) {
  const double step = report.chosen.step_seconds;
  if (options.strategy != "sequential") {
    const double gain = 100 * (report.sequential_seconds / step - 1);
    fmt::print("{:<40} {:9.2f} ms  ({} is {:.1f} % {})\n", "sequential, the same work",
               report.sequential_seconds * 1e3, options.strategy, std::abs(gain),
               gain < 0 ? "slower" : "faster");
  }
  if (report.devices < 2) {
    fmt::print("{:<40} none: there is one device\n", "exposed communication");
    return;
  }
  const double exposed = std::max(0.0, step - report.without_communication);
  fmt::print("{:<40} {:9.2f} ms\n", "the same step without communication",
             report.without_communication * 1e3);
  fmt::print("{:<40} {:9.2f} ms  ({:.1f} % of the step)\n", "exposed communication", exposed * 1e3,
             100 * exposed / step);
}

// What this strategy cannot do is said before anything is measured: the plan is made for it, with
// costs that were not measured.
void require_plan(Registry& registry, const NetDefinition& definition,
                  const SessionOptions& options) {
  const DeviceSpec devices = parse_devices(options.devices, registry);
  NetOptions how;
  how.batch = options.batch;
  how.data = options.data;
  how.precision = options.precision;
  if (devices.kind != "sim") how.device_kind = devices.kind;
  const Net net = build_net(definition, registry, how);
  const CostTable costs = options.costs.value_or(CostTable());
  StrategyInputs inputs;
  inputs.net = &net;
  inputs.devices = devices.count();
  inputs.costs = &costs;
  inputs.link = options.machine.link;
  inputs.options = options.strategy_options;
  (void)build_plan(options.strategy, inputs);
}

}  // namespace

std::string compute_text(const Options& options) {
  if (options.devices.starts_with("sim")) return "simulated";
  return options.paced.empty() ? "real" : "paced by " + options.paced;
}

double exposed_broadcast(const Plan& plan, const std::vector<TraceEvent>& events) {
  const std::map<int64_t, StepTimes> steps = step_times(plan, events);
  std::vector<double> exposed;
  for (const auto& [number, step] : steps) {
    const auto before = steps.find(number - 1);
    if (before == steps.end()) continue;
    const StepTimes& last = before->second;
    double seconds = 0;
    const auto sent = last.begins.find(Stage::send_conv_gradients);
    if (sent != last.begins.end() && last.ends.count(Stage::update_fc) > 0) {
      const double ready =
          std::max(last.end_of(Stage::backward_conv), last.end_of(Stage::update_fc));
      seconds += std::max(0.0, sent->second - ready);
    }
    const double updated = std::max(last.end_of(Stage::update_fc), last.end_of(Stage::update_conv));
    seconds += std::max(0.0, step.latest_forward - updated);
    exposed.push_back(seconds);
  }
  if (exposed.empty()) return 0;
  std::sort(exposed.begin(), exposed.end());
  return exposed[exposed.size() / 2];
}

SessionOptions session_options(const Options& options, const Shape& data) {
  SessionOptions session;
  session.devices = options.devices;
  session.precision = tandem::parse_precision(options.precision);
  session.strategy_options = options.strategy_options;
  session.machine = options.machine;
  session.batch = options.batch;
  session.data = data;
  session.testing = false;
  session.rule.momentum = 0.9F;
  session.rule.weight_decay = 0.0005F;
  if (!options.paced.empty()) {
    session.machine.paced = true;
    session.costs = CostTable::read(options.paced, Roofline{}, options.precision);
  }
  return session;
}

void announce(const std::string& what, const Options& options, int steps) {
  fmt::print("measuring {} on {}: {} + {} steps ...\n", what, options.devices, options.warm_up,
             steps);
  std::fflush(stdout);
}

PipelineReport measure_pipeline(Registry& registry, const NetDefinition& net, const Shape& data,
                                const Options& options) {
  PipelineReport report;
  SessionOptions chosen = session_options(options, data);
  chosen.strategy = options.strategy;
  const int steps = options.measured_steps();
  report.devices = parse_devices(options.devices, registry).count();
  if (options.strategy != "sequential") {
    SessionOptions plain = chosen;
    plain.strategy = "sequential";
    plain.strategy_options = options_of("sequential", chosen.strategy_options);
    require_plan(registry, net, chosen);
    announce("sequential", options, steps);
    Session session(registry, net, plain);
    const Measurement measured = measure(session, options.warm_up, steps);
    report.sequential_seconds = measured.step_seconds;
    // The split is chosen by what the layers really take here.
    if (!chosen.costs)
      chosen.costs = costs_of(session, session.net(), session.training().plan, measured.events);
  }
  announce(options.strategy, options, steps);
  Plan plan;
  {
    Session session(registry, net, chosen);
    plan = session.training().plan;
    chosen.strategy_options = session.options().strategy_options;
    report.chosen = measure(session, options.warm_up, steps);
    report.exposed_broadcast = exposed_broadcast(plan, report.chosen.events);
    report.split = plan.split_layer;
    report.notes = plan.notes;
    report.memory_forecast = session.memory_forecast();
    write_text_file(options.timeline, to_chrome_trace(plan, report.chosen.events));
    if (!options.svg.empty()) write_text_file(options.svg, to_svg(plan, report.chosen.events));
    if (!options.write_costs.empty())
      write_costs(session, costs_of(session, session.net(), plan, report.chosen.events), options);
  }
  if (report.devices > 1) {
    announce(options.strategy + " without communication", options, steps);
    report.without_communication =
        step_seconds_without_communication(registry, net, chosen, plan, options.warm_up, steps);
  }
  return report;
}

void print(const PipelineReport& report, const Options& options) {
  const Measurement& m = report.chosen;
  const char* broadcast =
      options.strategy_options.hidden_broadcast ? ", hidden broadcast" : ", plain broadcast";
  fmt::print("\nAlexNet, batch {} in all on {}, strategy {}{}{}\n", options.batch, options.devices,
             options.strategy, report.split.empty() ? "" : ", FC part from '" + report.split + "'",
             has_master(options) ? broadcast : "");
  fmt::print("compute: {}, {}; input: synthetic, one batch that stays in memory\n",
             compute_text(options), options.precision);
  fmt::print("memory: {}\n", report.memory_forecast);
  for (const std::string& note : report.notes) fmt::print("{}\n", note);
  fmt::print("\nthe stages of one step (the median of {}):\n{}", options.measured_steps(),
             stage_table(m.stages));
  print_parts(report);
  fmt::print("\n{:<40} {:9.2f} ms  {:.1f} images/s (from {:.2f} to {:.2f} ms)\n", "step",
             m.step_seconds * 1e3, m.images_per_second, m.fastest * 1e3, m.slowest * 1e3);
  print_formula(report, options);
  print_comparisons(report, options);
  fmt::print("peak memory of the process: {}\n", human_bytes(peak_memory_bytes()));
  if (!options.write_costs.empty()) fmt::print("costs written to {}\n", options.write_costs);
  if (!options.svg.empty()) fmt::print("timeline drawn in {}\n", options.svg);
  fmt::print("timeline written to {}: open it in https://ui.perfetto.dev or chrome://tracing\n\n",
             options.timeline);
}

}  // namespace alexnet
