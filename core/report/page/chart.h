// Line charts as inline SVG for HTML pages, with a legend and round numbers on both axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct ChartLine {
  std::string name;                               // of the user: it is escaped
  std::vector<std::pair<double, double>> points;  // by x; those that are not finite are left out
  bool faint = false;
  int colour = 0;  // one of eight
};
struct ChartFrame {
  std::string title, x_name;
  bool shares = false;  // y is 0 to 1, shown as 0 to 100 %
};

// Lines without points are left out; "" if none is left. A line of more than 400 points is drawn by
// means of neighbours. A few values far above the others are drawn at the upper edge.
[[nodiscard]] std::string line_chart(const ChartFrame& frame, std::vector<ChartLine> lines);

}  // namespace tandem
