// Which of a plan's tasks can be issued as one captured graph; the rest is issued task by task
// before or after the graph. Only the plan decides.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/plan/plan.h"
#include "include/tandem/devices.h"

namespace tandem {

// "auto", "on", "off"; Error on anything else.
[[nodiscard]] GraphUse parse_graph_use(const std::string& text);

// Indices of tasks, in the order of the plan; each task is in one of the lists. Within a
// micro-batch no captured task comes before one of `before`, and none of `after` comes before a
// captured one.
struct CaptureSplit {
  std::vector<int> before, captured, after;
  std::string reason;  // why nothing can be captured; then all tasks are in `before`
};
// A task is not captured if it touches an external buffer, whose address changes with every
// micro-batch, or if it only follows such a task on the copy stream, which brings the next batch
// while a graph runs.
[[nodiscard]] CaptureSplit split_for_capture(const Plan& plan);

// Whether the task reads or writes an external buffer.
[[nodiscard]] bool touches_external(const Plan& plan, const Task& task);

}  // namespace tandem
