#include "core/schedule/execution/capture.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/schedule/plan/ordering.h"

namespace tandem {
namespace {

// For each task those of its micro-batch that it directly comes after: by its waits, and on its
// streams.
std::vector<std::vector<int>> direct_predecessors(const Plan& plan) {
  const std::vector<std::vector<Dependency>> on_streams = stream_predecessors(plan);
  std::vector<std::vector<int>> result(plan.tasks.size());
  for (size_t task = 0; task < plan.tasks.size(); ++task) {
    for (const auto* list : {&on_streams[task], &plan.tasks[task].after}) {
      for (const Dependency& dependency : *list) {
        if (dependency.micro_batches_back == 0) result[task].push_back(dependency.task);
      }
    }
  }
  return result;
}

bool is_message(const Task& task) {
  return std::holds_alternative<SendWork>(task.work) ||
         std::holds_alternative<ReceiveWork>(task.work);
}

// The copy stream brings a batch while the micro-batch before computes. A captured task on it would
// make it wait for the whole graph, so tasks that only prepare the batch are issued with its copy.
bool travels_with_batch(const Task& task, const std::vector<int>& predecessors) {
  return !predecessors.empty() &&
         std::all_of(task.streams.begin(), task.streams.end(),
                     [](const StreamId& stream) { return stream.kind == StreamKind::copy; });
}

CaptureSplit none(const Plan& plan, const std::string& reason) {
  CaptureSplit split;
  split.before.resize(plan.tasks.size());
  std::iota(split.before.begin(), split.before.end(), 0);
  split.reason = reason;
  return split;
}

}  // namespace

GraphUse parse_graph_use(const std::string& text) {
  if (text == "auto") return GraphUse::automatic;
  if (text == "on") return GraphUse::on;
  if (text == "off") return GraphUse::off;
  throw error("--graphs {}: it is auto, on or off", text);
}

bool touches_external(const Plan& plan, const Task& task) {
  const auto is_external = [&](const Region& region) {
    return region.buffer >= 0 && plan.buffer(region.buffer).kind == BufferKind::external;
  };
  return std::any_of(task.reads.begin(), task.reads.end(), is_external) ||
         std::any_of(task.writes.begin(), task.writes.end(), is_external);
}

CaptureSplit split_for_capture(const Plan& plan) {
  const std::vector<std::vector<int>> predecessors = direct_predecessors(plan);
  enum class Part { before, captured, after };
  std::vector<Part> parts;
  CaptureSplit split;
  // Tasks stand in a valid order, so those that a task comes after are known already.
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    if (is_message(task)) {
      return none(plan, fmt::format("task '{}' waits for another rank", task.label));
    }
    Part last = Part::before;  // of those it comes after
    for (const int other : predecessors[i]) last = std::max(last, parts[size_t(other)]);
    const bool stays_out = touches_external(plan, task) ||
                           (last == Part::before && travels_with_batch(task, predecessors[i]));
    if (!stays_out && last == Part::after) {
      return none(plan, fmt::format("task '{}' comes after one in the middle of the plan that "
                                    "touches memory whose address changes with every micro-batch",
                                    task.label));
    }
    const Part part = !stays_out             ? Part::captured
                      : last == Part::before ? Part::before
                                             : Part::after;
    parts.push_back(part);
    (part == Part::before     ? split.before
     : part == Part::captured ? split.captured
                              : split.after)
        .push_back(static_cast<int>(i));
  }
  if (split.captured.empty()) return none(plan, "it has no task that could be captured");
  return split;
}

}  // namespace tandem
