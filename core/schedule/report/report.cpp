#include "core/schedule/report/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/schedule/plan/ordering.h"
#include "core/schedule/report/svg.h"

namespace tandem {

namespace {

constexpr double microseconds = 1e6, milliseconds = 1e3;

std::string name_of(const StreamId& stream) {
  return fmt::format("{} {}", to_string(stream.kind), stream.device);
}

std::string name_of(const Plan& plan, const Dependency& wait) {
  const std::string& label = plan.tasks[static_cast<size_t>(wait.task)].label;
  if (wait.micro_batches_back == 0) return fmt::format("'{}'", label);
  return fmt::format("'{}' {}", label,
                     wait.micro_batches_back == 1
                         ? std::string("of the step before")
                         : fmt::format("{} steps before", wait.micro_batches_back));
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// A collective is drawn on the stream that does the work.
std::string dot_clusters(const Plan& plan) {
  std::map<int, std::map<StreamKind, std::vector<size_t>>> devices;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const StreamId& stream = plan.tasks[i].streams.at(0);
    devices[stream.device][stream.kind].push_back(i);
  }
  std::string text;
  for (const auto& [device, streams] : devices) {
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"device {}\";\n", device, device);
    for (const auto& [kind, tasks] : streams) {
      text += fmt::format("    subgraph cluster_{}_{} {{\n      label=\"{}\";\n", device,
                          to_string(kind), to_string(kind));
      for (const size_t task : tasks) {
        text += fmt::format("      t{} [label={}, fillcolor=\"{}\", tooltip=\"{}\"];\n", task,
                            quoted(plan.tasks[task].label), stage_colour(plan.tasks[task].stage),
                            to_string(plan.tasks[task].stage));
      }
      text += "    }\n";
    }
    text += "  }\n";
  }
  return text;
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text =
      fmt::format("{} of '{}' on {} device{}, batch {}: {} tasks\n", plan.strategy, plan.net,
                  plan.devices, plan.devices == 1 ? "" : "s", plan.batch, plan.tasks.size());
  for (const std::string& note : plan.notes) text += fmt::format("  {}\n", note);
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    std::string streams, waits;
    for (const StreamId& stream : task.streams) {
      streams += (streams.empty() ? "" : " + ") + name_of(stream);
    }
    for (const Dependency& wait : task.after) {
      waits += (waits.empty() ? "  after " : ", ") + name_of(plan, wait);
    }
    text += fmt::format("{:4}  {:<20} {:<32} {}{}\n", i, to_string(task.stage), task.label, streams,
                        waits);
  }
  return text;
}

std::string to_dot(const Plan& plan) {
  std::string text = fmt::format(
      "digraph plan {{\n  label={};\n  rankdir=LR;\n  node [shape=box, style=filled];\n",
      quoted(fmt::format("{} of {}", plan.strategy, plan.net)));
  text += dot_clusters(plan);
  const auto predecessors = stream_predecessors(plan);
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    for (const Dependency& before : predecessors[i]) {
      if (before.micro_batches_back > 0) continue;
      text += fmt::format("  t{} -> t{} [color=\"#aaaaaa\"];\n", before.task, i);
    }
    for (const Dependency& wait : plan.tasks[i].after) {
      const std::string style =
          wait.micro_batches_back == 0
              ? std::string("penwidth=2")
              : fmt::format("style=dashed, constraint=false, label=\"step -{}\"",
                            wait.micro_batches_back);
      text += fmt::format("  t{} -> t{} [{}];\n", wait.task, i, style);
    }
  }
  return text + "}\n";
}

std::string to_chrome_trace(const Plan& plan, const std::vector<TraceEvent>& events,
                            const std::vector<HostSpan>& host) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  const auto name = [&](const char* what, int device, int thread, const std::string& value) {
    list.push_back({{"name", what},
                    {"ph", "M"},
                    {"pid", device},
                    {"tid", thread},
                    {"args", {{"name", value}}}});
  };
  std::set<std::pair<int, StreamKind>> streams;
  for (int device = 0; device < plan.devices; ++device) {
    for (const StreamKind kind :
         {StreamKind::compute, StreamKind::communication, StreamKind::copy}) {
      streams.emplace(device, kind);
    }
  }
  for (const Task& task : plan.tasks) {
    for (const StreamId& stream : task.streams) streams.emplace(stream.device, stream.kind);
  }
  for (int device = 0; device < plan.devices; ++device) {
    name("process_name", device, 0, fmt::format("device {}", device));
  }
  for (const auto& [device, kind] : streams) {
    name("thread_name", device, static_cast<int>(kind), to_string(kind));
  }
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks.at(static_cast<size_t>(event.task));
    for (const StreamId& stream : task.streams) {
      list.push_back({{"name", task.label},
                      {"cat", to_string(task.stage)},
                      {"ph", "X"},
                      {"pid", stream.device},
                      {"tid", static_cast<int>(stream.kind)},
                      {"ts", event.start * microseconds},
                      {"dur", (event.end - event.start) * microseconds},
                      {"args",
                       {{"stage", to_string(task.stage)},
                        {"layer", task.layer},
                        {"step", event.micro_batch}}}});
    }
  }
  std::map<std::string, int> tracks;
  for (const HostSpan& span : host) tracks.emplace(span.track, 0);
  if (!host.empty()) name("process_name", plan.devices, 0, "host");
  int number = 0;
  for (auto& [track, thread] : tracks) {
    thread = number++;
    name("thread_name", plan.devices, thread, track);
  }
  for (const HostSpan& span : host) {
    list.push_back({{"name", span.name},
                    {"cat", "loading"},
                    {"ph", "X"},
                    {"pid", plan.devices},
                    {"tid", tracks[span.track]},
                    {"ts", span.start * microseconds},
                    {"dur", (span.end - span.start) * microseconds}});
  }
  // Names come from users' files, whose bytes need not be UTF-8.
  return Json{{"traceEvents", list}, {"displayTimeUnit", "ms"}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

namespace {

// The input of a step is copied while the one before computes, so it does not say when a step
// begins.
double first_compute(const Plan& plan, const std::vector<TraceEvent>& step) {
  double any = step[0].start, compute = std::numeric_limits<double>::infinity();
  for (const TraceEvent& event : step) {
    any = std::min(any, event.start);
    const Task& task = plan.tasks.at(static_cast<size_t>(event.task));
    if (task.streams[0].kind == StreamKind::compute) compute = std::min(compute, event.start);
  }
  return std::isfinite(compute) ? compute : any;
}

}  // namespace

std::vector<StageTime> stage_times(const Plan& plan, const std::vector<TraceEvent>& step) {
  if (step.empty()) return {};
  const double begin = first_compute(plan, step);
  std::map<std::tuple<Stage, int, StreamKind>, StageTime> stages;
  for (const TraceEvent& event : step) {
    const Task& task = plan.tasks.at(static_cast<size_t>(event.task));
    const double start = event.start - begin, end = event.end - begin;
    for (const StreamId& stream : task.streams) {
      const auto [entry, is_new] = stages.try_emplace(
          {task.stage, stream.device, stream.kind},
          StageTime{task.stage, stream.device, stream.kind, start, end - start, 0});
      StageTime& stage = entry->second;
      const double last = std::max(stage.start + stage.duration, end);
      stage.start = std::min(stage.start, start);
      stage.duration = last - stage.start;
      stage.busy += end - start;
    }
  }
  std::vector<StageTime> result;
  for (const auto& [key, stage] : stages) result.push_back(stage);
  return result;
}

std::string stage_table(const std::vector<StageTime>& stages) {
  std::string text = fmt::format("{:<20} {:>6}  {:<13} {:>10} {:>12} {:>10}\n", "stage", "device",
                                 "stream", "start ms", "duration ms", "busy ms");
  for (const StageTime& stage : stages) {
    text +=
        fmt::format("{:<20} {:>6}  {:<13} {:>10.3f} {:>12.3f} {:>10.3f}\n", to_string(stage.stage),
                    stage.device, to_string(stage.stream), stage.start * milliseconds,
                    stage.duration * milliseconds, stage.busy * milliseconds);
  }
  return text;
}

std::string file_of_strategy(const std::string& path, std::string strategy) {
  constexpr const char* word = " --reduce ";
  if (const size_t at = strategy.find(word); at != std::string::npos) {
    strategy.replace(at, std::string(word).size(), "-");
  }
  std::erase(strategy, ',');
  std::replace(strategy.begin(), strategy.end(), ' ', '-');
  const auto both_dashes = [](char a, char b) { return a == '-' && b == '-'; };
  strategy.erase(std::unique(strategy.begin(), strategy.end(), both_dashes), strategy.end());
  const std::filesystem::path whole(path);
  std::filesystem::path name = whole.stem();
  name += "." + strategy;
  name += whole.extension();
  return (whole.parent_path() / name).string();
}

}  // namespace tandem
