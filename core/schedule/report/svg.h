// A timeline as a picture: one row for each stream on which there is something to see, a box for
// each task, colored by stage, with the stages' legend and the time in milliseconds.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/plan/plan.h"
#include "core/schedule/plan/trace.h"

namespace tandem {

// A whole SVG document of the first two micro-batches among the events, from the first compute task
// of the first to the end of the second, with tasks of other micro-batches at that time. Error
// without events.
[[nodiscard]] std::string to_svg(const Plan& plan, const std::vector<TraceEvent>& events);

}  // namespace tandem
