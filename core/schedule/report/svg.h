// A timeline as a picture: one row for each stream on which there is something to see, a box for
// each task, coloured by stage, with the stages' legend and the time in milliseconds.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/plan/plan.h"
#include "core/schedule/plan/trace.h"

namespace tandem {

// The first two of the given steps, from the first one's first compute task to the second one's
// end, with what is done for other steps meanwhile; whole SVG document.
[[nodiscard]] std::string to_svg(const Plan& plan, const std::vector<TraceEvent>& events);

// The fill colour of a stage, in every picture and graph: "#80b1d3".
[[nodiscard]] const char* stage_colour(Stage stage);

}  // namespace tandem
