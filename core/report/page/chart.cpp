#include "core/report/page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/strings.h"

namespace tandem {
namespace {

constexpr double chart_width = 540, chart_height = 250, chart_left = 54, chart_right = 14,
                 chart_top = 10, chart_bottom = 34;
constexpr size_t most_points = 400, most_dots = 60;

using ChartPoints = std::vector<std::pair<double, double>>;

struct Axis {
  double low = 0, high = 1, step = 1;

  [[nodiscard]] double share(double value) const {
    return std::clamp((value - low) / (high - low), 0.0, 1.0);
  }
};

// Begins and ends at multiples of 1, 2 or 5 times a power of ten.
Axis round_axis(double low, double high) {
  if (!(high > low)) {
    const double room = high == 0 ? 1 : std::abs(high) / 2;
    low -= low == 0 ? 0 : room;
    high += room;
  }
  const double rough = (high - low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, step};
}

ChartPoints thinned(const ChartPoints& points) {
  if (points.size() <= most_points) return points;
  ChartPoints result;
  for (size_t part = 0; part < most_points; ++part) {
    const size_t begin = part * points.size() / most_points;
    const size_t end = (part + 1) * points.size() / most_points;
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) {
      x += points[i].first;
      y += points[i].second;
    }
    const auto count = static_cast<double>(end - begin);
    result.emplace_back(x / count, y / count);
  }
  return result;
}

// The first losses may be far above all others, which would then be one flat line.
double upper_end(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double most = values.back(), usual = values[(values.size() - 1) * 9 / 10];
  return usual > 0 && most > 3 * usual ? 1.5 * usual : most;
}

std::string number_text(double value, const ChartFrame& frame) {
  if (frame.shares) return fmt::format("{:.4g} %", 100 * value);
  return fmt::format("{:.4g}", std::abs(value) < 1e-12 ? 0.0 : value);
}

std::string axes_svg(const ChartFrame& frame, const Axis& x, const Axis& y) {
  std::string svg;
  const double wide = chart_width - chart_left - chart_right;
  const double high = chart_height - chart_top - chart_bottom;
  for (int i = 0; y.low + i * y.step <= y.high + y.step / 2; ++i) {
    const double value = y.low + i * y.step, at = chart_top + high * (1 - y.share(value));
    svg += fmt::format(
        "<line class=grid x1={:.0f} x2={:.0f} y1={:.1f} y2={:.1f} /><text x={:.0f} y={:.1f} "
        "text-anchor=end>{}</text>",
        chart_left, chart_width - chart_right, at, at, chart_left - 6, at + 4,
        number_text(value, frame));
  }
  for (int i = 0; x.low + i * x.step <= x.high + x.step * 1e-6; ++i) {
    const double value = x.low + i * x.step, at = chart_left + wide * x.share(value);
    svg += fmt::format("<text x={:.1f} y={:.0f} text-anchor=middle>{:.4g}</text>", at,
                       chart_height - chart_bottom + 15, value);
  }
  return svg + fmt::format("<text x={:.0f} y={:.0f} text-anchor=end>{}</text>",
                           chart_width - chart_right, chart_height - 4, escape_xml(frame.x_name));
}

std::string line_svg(const ChartFrame& frame, const ChartLine& line, const Axis& x, const Axis& y) {
  std::string path, dots;
  for (const auto& [px, py] : line.points) {
    const double at = chart_left + (chart_width - chart_left - chart_right) * x.share(px);
    const double up = chart_top + (chart_height - chart_top - chart_bottom) * (1 - y.share(py));
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", at, up);
    if (line.faint || line.points.size() > most_dots) continue;
    dots += fmt::format(
        "<circle cx={:.1f} cy={:.1f} r=2.6 fill=\"var(--s{})\"><title>{}, {} {:.4g}: {}</title>"
        "</circle>",
        at, up, line.colour % 8, escape_xml(line.name), escape_xml(frame.x_name), px,
        number_text(py, frame));
  }
  return fmt::format("<path{} stroke=\"var(--s{})\" d=\"{}\"/>", line.faint ? " class=faint" : "",
                     line.colour % 8, path) +
         dots;
}

}  // namespace

std::string line_chart(const ChartFrame& frame, std::vector<ChartLine> lines) {
  std::vector<double> xs, ys;
  for (ChartLine& line : lines) {
    std::erase_if(line.points, [](const auto& point) {
      return !std::isfinite(point.first) || !std::isfinite(point.second);
    });
    line.points = thinned(line.points);
    for (const auto& [x, y] : line.points) {
      xs.push_back(x);
      ys.push_back(y);
    }
  }
  std::erase_if(lines, [](const ChartLine& line) { return line.points.empty(); });
  if (lines.empty()) return "";
  const double last = *std::max_element(xs.begin(), xs.end());
  Axis x = round_axis(std::min(0.0, *std::min_element(xs.begin(), xs.end())), last);
  if (last > x.low) x.high = last;  // no room after the last point
  double least = *std::min_element(ys.begin(), ys.end());
  const double most = frame.shares ? *std::max_element(ys.begin(), ys.end()) : upper_end(ys);
  if (least > 0 && least < most / 2) least = 0;
  const Axis y = round_axis(least, most);
  std::string svg, key;
  for (const ChartLine& line : lines) {
    svg += line_svg(frame, line, x, y);
    key += fmt::format("<span><i style=\"background:var(--s{}){}\"></i>{}</span>", line.colour % 8,
                       line.faint ? ";opacity:.4" : "", escape_xml(line.name));
  }
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1:.0f} {2:.0f}\" role=img "
      "aria-label=\"{0}\">{3}{4}</svg><div class=key>{5}</div></figure>\n",
      escape_xml(frame.title), chart_width, chart_height, axes_svg(frame, x, y), svg, key);
}

}  // namespace tandem
