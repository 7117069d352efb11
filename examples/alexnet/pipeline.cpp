#include "pipeline.h"

#include <fmt/format.h>
#include <tandem/error.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <map>

#include "text.h"

namespace alexnet {
namespace {

using tandem::Profile;
using tandem::Profiler;
using tandem::StageSpan;
using tandem::StepParts;

const std::atomic<bool>* stop_flag = nullptr;  // null: signals end the program

// When the stages of one step began and ended, over all devices.
struct StepTimes {
  std::map<std::string, double> starts, ends;
  double latest_forward = 0;  // when the last device began its forward

  [[nodiscard]] double end_of(const std::string& stage) const {
    const auto found = ends.find(stage);
    return found == ends.end() ? 0 : found->second;
  }
};

std::map<int64_t, StepTimes> step_times(const std::vector<StageSpan>& spans) {
  std::map<int64_t, StepTimes> steps;
  for (const StageSpan& span : spans) {
    StepTimes& step = steps[span.step];
    double& start = step.starts.emplace(span.stage, span.start).first->second;
    start = std::min(start, span.start);
    step.ends[span.stage] = std::max(step.ends[span.stage], span.end);
    if (span.stage == "forward") step.latest_forward = std::max(step.latest_forward, span.start);
  }
  return steps;
}

void print_parts(const Profile& profile) {
  const StepParts& p = profile.parts;
  const auto line = [](const char* text, double seconds) {
    say("  {:<32}{}\n", text, milliseconds_text(seconds));
  };
  say("\n");
  line("a  forward", p.forward);
  line("b  backward of the FC part", p.backward_fc);
  line("c  backward of the conv part", p.backward_conv);
  line("m  FC gradients and update", p.fc_gradients);
  line("n  conv gradients and update", p.conv_gradients);
  line("   broadcast, in all", p.broadcast);
  line("   broadcast, exposed", exposed_broadcast(profile));
}

// Only the step of these is a sum of its parts.
bool has_formula(const Options& options) {
  return options.strategy == "two_phase" || options.strategy == "sequential";
}

// The chosen strategy's step by its parts, beside what was measured.
void print_formula(const Profile& profile, const Options& options) {
  if (!has_formula(options)) return;
  const bool overlapped = options.strategy == "two_phase";
  const double expected = overlapped ? profile.parts.two_phase(true) + exposed_broadcast(profile)
                                     : profile.parts.sequential();
  say("{:<40} {}  (the step is {:+.1f} % of it away)\n",
      overlapped ? "a + b + max(c, m) + n + exposed broadcast" : "a + b + c + m + n + broadcast",
      milliseconds_text(expected), 100 * (profile.step_seconds - expected) / expected);
}

void print_comparisons(const PipelineReport& report, const Options& options) {
  const double step = report.chosen.step_seconds;
  if (options.strategy != "sequential") {
    const double gain = 100 * (report.sequential_seconds / step - 1);
    say("{:<40} {}  ({} is {:.1f} % {})\n", "sequential, the same work",
        milliseconds_text(report.sequential_seconds), options.strategy, std::abs(gain),
        gain < 0 ? "slower" : "faster");
  }
  if (report.devices < 2) {
    say("{:<40} none: there is one device\n", "exposed communication");
    return;
  }
  if (report.without_communication <= 0) {
    say("{:<40} not measured: stopped\n", "exposed communication");
    return;
  }
  const double exposed = std::max(0.0, step - report.without_communication);
  say("{:<40} {}\n", "the same step without communication",
      milliseconds_text(report.without_communication));
  say("{:<40} {}  ({:.1f} % of the step)\n", "exposed communication", milliseconds_text(exposed),
      100 * exposed / step);
}

}  // namespace

std::string compute_text(const Options& options) {
  if (options.devices.starts_with("sim")) return "simulated";
  return options.paced.empty() ? "real" : "paced by " + options.paced;
}

double exposed_broadcast(const Profile& profile) {
  const std::map<int64_t, StepTimes> steps = step_times(profile.stages);
  std::vector<double> exposed;
  for (const auto& [number, step] : steps) {
    const auto before = steps.find(number - 1);
    if (before == steps.end()) continue;
    const StepTimes& last = before->second;
    double seconds = 0;
    const auto sent = last.starts.find("send_conv_gradients");
    if (sent != last.starts.end() && last.ends.contains("update_fc")) {
      const double ready = std::max(last.end_of("backward_conv"), last.end_of("update_fc"));
      seconds += std::max(0.0, sent->second - ready);
    }
    const double updated = std::max(last.end_of("update_fc"), last.end_of("update_conv"));
    seconds += std::max(0.0, step.latest_forward - updated);
    exposed.push_back(seconds);
  }
  if (exposed.empty()) return 0;
  std::sort(exposed.begin(), exposed.end());
  return exposed[exposed.size() / 2];
}

tandem::ProfileOptions profile_options(const Options& options) {
  tandem::ProfileOptions profile;
  profile.net = "alexnet";
  profile.classes = options.classes;
  profile.size = options.size;
  profile.batch = options.batch;
  profile.devices = options.devices;
  profile.precision = options.precision;
  profile.machine = options.machine;
  profile.paced = options.paced;
  profile.warm_up = options.warm_up;
  profile.steps = options.measured_steps();
  return profile;
}

void announce(const std::string& what, const Options& options) {
  say("measuring {} on {}: {} + {} steps ...\n", what, options.devices, options.warm_up,
      options.measured_steps());
  std::fflush(stdout);
}

void watch(Profiler& profiler) {
  if (profiler.rank_count() > 1) return;  // the launcher ends all of them
  stop_flag = tandem::stop_on_signals(
      "\ntandem-alexnet: stopping after the step at hand, with what there is\n");
  const auto note = [](const std::string& line) {
    say("{}\n", line);
    std::fflush(stdout);
  };
  profiler.watch(note, stop_flag);
}

bool was_stopped() {
  return stop_flag != nullptr && *stop_flag;
}

void begin_as_rank(const Profiler& profiler, const Options& options) {
  if (profiler.rank_count() == 1) return;
  if (profiler.rank() > 0 && std::freopen("/dev/null", "w", stdout) == nullptr) {
    throw tandem::Error("/dev/null cannot be opened");
  }
  if (options.data.empty()) return;
  throw tandem::Error(
      "--data " + options.data +
      ": several ranks only measure here; they train with: tandem train --net alexnet --data DIR");
}

PipelineReport measure_pipeline(const Options& options) {
  PipelineReport report;
  Profiler profiler(profile_options(options));
  begin_as_rank(profiler, options);
  watch(profiler);
  report.devices = profiler.device_count();
  profiler.require(options.strategy, options.strategy_options);
  if (options.strategy != "sequential") {
    announce("sequential", options);
    report.sequential_seconds =
        profiler.measure("sequential", options.strategy_options).step_seconds;
  }
  announce(options.strategy, options);
  report.chosen = profiler.measure(options.strategy, options.strategy_options);
  report.chosen.write_timeline(options.timeline);
  if (!options.svg.empty()) report.chosen.write_picture(options.svg);
  if (!options.write_costs.empty()) report.chosen.write_costs(options.write_costs);
  if (report.devices > 1 && !was_stopped()) {
    announce(options.strategy + " without communication", options);
    report.without_communication = profiler.seconds_without_communication(report.chosen);
  }
  return report;
}

void print(const PipelineReport& report, const Options& options) {
  const Profile& p = report.chosen;
  const char* broadcast = options.hides_broadcast() ? ", hidden broadcast" : ", plain broadcast";
  say("\nAlexNet, batch {} in all on {}, strategy {}{}{}\n", options.batch, options.devices,
      options.strategy, p.split.empty() ? "" : ", FC part from '" + p.split + "'",
      has_formula(options) ? broadcast : "");
  say("compute: {}, {}; input: synthetic, one batch that stays in memory\n", compute_text(options),
      options.precision);
  if (!p.message_path.empty()) say("{}\n", p.message_path);
  say("memory: {}\n", p.memory);
  for (const std::string& note : p.notes) say("{}\n", note);
  say("\nthe stages of one step (the median of {}):\n{}", options.measured_steps(), p.stage_table);
  print_parts(p);
  say("\n{:<40} {}  {:.1f} images/s (from {:.2f} to {:.2f} ms)\n", "step",
      milliseconds_text(p.step_seconds), p.images_per_second, p.fastest * 1e3, p.slowest * 1e3);
  print_formula(p, options);
  print_comparisons(report, options);
  say("peak memory of the process: {}\n", bytes_text(tandem::peak_memory_bytes()));
  if (!options.write_costs.empty()) say("costs written to {}\n", options.write_costs);
  if (!options.svg.empty()) say("timeline drawn in {}\n", options.svg);
  say("timeline written to {}: open it in https://ui.perfetto.dev or chrome://tracing\n\n",
      options.timeline);
}

}  // namespace alexnet
