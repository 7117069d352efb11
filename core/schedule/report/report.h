// A plan and its traces for people and tools: text, DOT, Chrome trace JSON, and the table of the
// eight stages.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/plan/plan.h"
#include "core/schedule/plan/trace.h"

namespace tandem {

[[nodiscard]] std::string to_text(const Plan& plan);
[[nodiscard]] std::string to_dot(const Plan& plan);
// What the host did meanwhile, on the same clock as TraceEvent.
struct HostSpan {
  std::string track, name;
  double start = 0, end = 0;
  int rank = 0;
};
// One of several ranks with as many devices each. Its times were shifted to the clock of rank 0.
struct TraceRank {
  std::string host;  // "": not known
  double shift = 0, uncertainty = 0;
};
// One track for each stream and for each track of the host; opens in Perfetto and chrome://tracing.
// A process has the tracks of a device, those of the host, or all of one rank.
[[nodiscard]] std::string to_chrome_trace(const Plan& plan, const std::vector<TraceEvent>& events,
                                          const std::vector<HostSpan>& host = {},
                                          const std::vector<TraceRank>& ranks = {});

// The file for a strategy's picture, trace or graph where there are several strategies:
// "plan.json" and "layerwise --reduce ring" -> "plan.layerwise-ring.json".
[[nodiscard]] std::string file_of_strategy(const std::string& path, std::string strategy);

struct StageTime {
  Stage stage;
  int device = 0;
  StreamKind stream = StreamKind::compute;
  double start = 0;     // seconds after the first compute task; negative: before it
  double duration = 0;  // from its first task's start to its last task's end
  double busy = 0;      // sum of its tasks
};
// From the events of one micro-batch. Ordered by stage, then by device.
[[nodiscard]] std::vector<StageTime> stage_times(const Plan& plan,
                                                 const std::vector<TraceEvent>& events);
[[nodiscard]] std::string stage_table(const std::vector<StageTime>& stages);

}  // namespace tandem
