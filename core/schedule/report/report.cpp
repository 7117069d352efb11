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
#include "core/base/text/strings.h"
#include "core/schedule/plan/ordering.h"
#include "core/schedule/report/svg.h"

namespace tandem {
namespace {

constexpr double microseconds = 1e6, milliseconds = 1e3;

std::string name_of(const StreamId& stream) {
  return fmt::format("{} {}", to_string(stream.kind), stream.device);
}

std::string name_of(const Plan& plan, const Dependency& wait) {
  const std::string& label = plan.task(wait.task).label;
  if (wait.micro_batches_back == 0) return fmt::format("'{}'", label);
  return fmt::format("'{}' {}", label,
                     wait.micro_batches_back == 1
                         ? std::string("of the micro-batch before")
                         : fmt::format("{} micro-batches before", wait.micro_batches_back));
}

// A task of several streams is drawn on the one that does the work.
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
                            quote(plan.tasks[task].label), plan.tasks[task].stage.color,
                            plan.tasks[task].stage.name);
      }
      text += "    }\n";
    }
    text += "  }\n";
  }
  return text;
}

using Json = nlohmann::ordered_json;

// Processes and threads of a Chrome trace.
struct TraceTrack {
  int process, thread;
};

// Which track is whose. A device is a process with a thread for each stream, and the host is the
// one after the devices; of several ranks each is one process with all of these.
class TraceTracks {
 public:
  TraceTracks(const Plan& plan, const std::vector<TraceRank>& ranks)
      : devices_(plan.devices),
        each_(ranks.empty() ? 0 : plan.devices / static_cast<int>(ranks.size())) {}

  [[nodiscard]] bool has_ranks() const { return each_ > 0; }
  [[nodiscard]] TraceTrack of(const StreamId& stream) const {
    const int kind = static_cast<int>(stream.kind);
    if (!has_ranks()) return {stream.device, kind};
    return {stream.device / each_, stream.device % each_ * stream_kinds + kind};
  }
  [[nodiscard]] TraceTrack of_host(int rank, int number) const {
    if (!has_ranks()) return {devices_, number};
    return {rank, each_ * stream_kinds + number};
  }

 private:
  int devices_, each_;
};

class ChromeTrace {
 public:
  void name(const char* what, const TraceTrack& track, const std::string& name) {
    events_.push_back({{"name", what},
                       {"ph", "M"},
                       {"pid", track.process},
                       {"tid", track.thread},
                       {"args", {{"name", name}}}});
  }
  Json& add(const std::string& name, const std::string& category, const TraceTrack& track,
            double start, double end) {
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"pid", track.process},
                       {"tid", track.thread},
                       {"ts", start * microseconds},
                       {"dur", (end - start) * microseconds}});
    return events_.back();
  }
  void add_clocks(const std::vector<TraceRank>& ranks) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      clocks_.push_back({{"rank", rank},
                         {"host", ranks[rank].host},
                         {"shift_seconds", ranks[rank].shift},
                         {"uncertainty_seconds", ranks[rank].uncertainty}});
    }
  }
  // Names come from users' files, whose bytes need not be UTF-8.
  [[nodiscard]] std::string text() const {
    Json tree{{"traceEvents", events_}, {"displayTimeUnit", "ms"}};
    if (!clocks_.empty()) tree["otherData"] = {{"clocks", clocks_}};
    return tree.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  Json events_ = Json::array(), clocks_ = Json::array();
};

void name_streams(const Plan& plan, const TraceTracks& tracks, ChromeTrace& trace) {
  std::set<std::pair<int, StreamKind>> streams;
  for (int device = 0; device < plan.devices; ++device) {
    if (!tracks.has_ranks()) {
      trace.name("process_name", {device, 0}, fmt::format("device {}", device));
    }
    for (const auto kind : {StreamKind::compute, StreamKind::communication, StreamKind::copy}) {
      streams.emplace(device, kind);
    }
  }
  for (const Task& task : plan.tasks) {
    for (const StreamId& stream : task.streams) streams.emplace(stream.device, stream.kind);
  }
  for (const auto& [device, kind] : streams) {
    const std::string name = to_string(kind);
    trace.name("thread_name", tracks.of({device, kind}),
               tracks.has_ranks() ? fmt::format("device {} {}", device, name) : name);
  }
}

void name_ranks(const std::vector<TraceRank>& ranks, ChromeTrace& trace) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string& host = ranks[rank].host;
    trace.name("process_name", {static_cast<int>(rank), 0},
               fmt::format("rank {}{}", rank, host.empty() ? "" : " on " + host));
  }
  trace.add_clocks(ranks);
}

void add_host(const std::vector<HostSpan>& host, const TraceTracks& tracks, ChromeTrace& trace) {
  if (host.empty()) return;
  std::map<std::pair<int, std::string>, TraceTrack> of_spans;
  std::map<int, int> counts;  // by rank
  for (const HostSpan& span : host)
    of_spans.emplace(std::pair{span.rank, span.track}, TraceTrack{});
  if (!tracks.has_ranks()) trace.name("process_name", tracks.of_host(0, 0), "host");
  for (auto& [key, track] : of_spans) {
    track = tracks.of_host(key.first, counts[key.first]++);
    trace.name("thread_name", track, key.second);
  }
  for (const HostSpan& span : host) {
    trace.add(span.name, "loading", of_spans.at({span.rank, span.track}), span.start, span.end);
  }
}

// The input of a micro-batch is copied while the one before computes, so it does not show when a
// micro-batch begins.
double first_compute(const Plan& plan, const std::vector<TraceEvent>& events) {
  double any = events[0].start, compute = std::numeric_limits<double>::infinity();
  for (const TraceEvent& event : events) {
    any = std::min(any, event.start);
    const Task& task = plan.tasks.at(size_t(event.task));
    if (task.streams[0].kind == StreamKind::compute) compute = std::min(compute, event.start);
  }
  return std::isfinite(compute) ? compute : any;
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text =
      fmt::format("{} of '{}' on {} device{}, batch {}: {} tasks\n", plan.strategy, plan.net,
                  plan.devices, plan.devices == 1 ? "" : "s", plan.batch, plan.tasks.size());
  for (const std::string& note : plan.notes) text += fmt::format("  {}\n", note);
  if (!plan.recomputation.empty()) text += fmt::format("  {}\n", plan.recomputation);
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    std::string streams, waits;
    for (const StreamId& stream : task.streams) {
      streams += (streams.empty() ? "" : " + ") + name_of(stream);
    }
    for (const Dependency& wait : task.after) {
      waits += (waits.empty() ? "  after " : ", ") + name_of(plan, wait);
    }
    text +=
        fmt::format("{:4}  {:<20} {:<32} {}{}\n", i, task.stage.name, task.label, streams, waits);
  }
  return text;
}

std::string to_dot(const Plan& plan) {
  std::string text = fmt::format(
      "digraph plan {{\n  label={};\n  rankdir=LR;\n  node [shape=box, style=filled];\n",
      quote(fmt::format("{} of {}", plan.strategy, plan.net)));
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
              : fmt::format("style=dashed, constraint=false, label=\"micro-batch -{}\"",
                            wait.micro_batches_back);
      text += fmt::format("  t{} -> t{} [{}];\n", wait.task, i, style);
    }
  }
  return text + "}\n";
}

std::string to_chrome_trace(const Plan& plan, const std::vector<TraceEvent>& events,
                            const std::vector<HostSpan>& host,
                            const std::vector<TraceRank>& ranks) {
  const TraceTracks tracks(plan, ranks);
  ChromeTrace trace;
  name_ranks(ranks, trace);
  name_streams(plan, tracks, trace);
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks.at(size_t(event.task));
    const int64_t per_step = plan.micro_batches_per_step;
    for (const StreamId& stream : task.streams) {
      Json& args = trace.add(task.label, to_string(task.stage), tracks.of(stream), event.start,
                             event.end)["args"];
      args = {{"stage", to_string(task.stage)},
              {"layer", task.layer},
              {"step", event.micro_batch / per_step}};
      if (per_step > 1) args["micro_batch"] = event.micro_batch % per_step;
    }
  }
  add_host(host, tracks, trace);
  return trace.text();
}

std::vector<StageTime> stage_times(const Plan& plan, const std::vector<TraceEvent>& events) {
  if (events.empty()) return {};
  const double begin = first_compute(plan, events);
  std::map<std::tuple<Stage, int, StreamKind>, StageTime> stages;
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks.at(size_t(event.task));
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
