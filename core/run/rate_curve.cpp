#include "core/run/rate_curve.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/svg.h"

namespace tandem {
namespace {

constexpr size_t min_points = 10;
constexpr const char* centered = "text-anchor=\"middle\"";
constexpr double keeps = 0.9;  // of the smoothed loss, at each step

// The first points are means over few losses, and may be low by chance.
const RateCurve::Point& lowest_point(const RateCurve& curve) {
  const auto first = std::ptrdiff_t(std::min(min_points, curve.points.size()) - 1);
  return *std::min_element(curve.points.begin() + first, curve.points.end(),
                           [](const auto& a, const auto& b) { return a.smoothed < b.smoothed; });
}

// The picture's coordinates.
struct Axes {
  static constexpr double left = 70, right = 690, top = 40, bottom = 330;
  double first_decade = 0, last_decade = 1, low = 0, high = 1;

  explicit Axes(const RateCurve& curve) {
    first_decade = std::floor(std::log10(curve.points.front().rate) + 1e-9);
    last_decade =
        std::max(first_decade + 1, std::ceil(std::log10(curve.points.back().rate) - 1e-9));
    low = lowest_point(curve).smoothed;
    high = curve.points.front().smoothed;
    for (const RateCurve::Point& point : curve.points) {
      // The end of a curve that diverges would flatten the rest.
      if (point.rate <= curve.lowest) high = std::max(high, point.smoothed);
    }
    const double margin = std::max(1e-6, 0.25 * (high - low));
    low -= margin;
    high += 2 * margin;
  }
  [[nodiscard]] double x(double rate) const {
    const double share = (std::log10(rate) - first_decade) / (last_decade - first_decade);
    return left + std::clamp(share, 0.0, 1.0) * (right - left);
  }
  [[nodiscard]] double y(double loss) const {
    return bottom - (std::min(loss, high) - low) / (high - low) * (bottom - top);
  }
};

std::string grid(const Axes& axes) {
  constexpr const char* stroke = "stroke=\"#ddd\"";
  std::string text;
  for (double decade = axes.first_decade; decade <= axes.last_decade; ++decade) {
    const double x = axes.x(std::pow(10, decade));
    text += svg_line(x, Axes::top, x, Axes::bottom, stroke);
    text += svg_text(x, Axes::bottom + 18, fmt::format("1e{:.0f}", decade), centered);
  }
  constexpr int lines = 4;
  for (int i = 0; i <= lines; ++i) {
    const double loss = axes.low + (axes.high - axes.low) * i / lines, y = axes.y(loss);
    text += svg_line(Axes::left, y, Axes::right, y, stroke);
    text += svg_text(Axes::left - 6, y + 4, fmt::format("{:.3g}", loss), "text-anchor=\"end\"");
  }
  return text;
}

std::string polyline(const RateCurve& curve, const Axes& axes, double RateCurve::Point::*value,
                     const char* stroke) {
  std::string points;
  for (const RateCurve::Point& point : curve.points) {
    points += fmt::format("{:.1f},{:.1f} ", axes.x(point.rate), axes.y(point.*value));
  }
  return fmt::format("<polyline fill=\"none\" points=\"{}\" {}/>\n", points, stroke);
}

}  // namespace

void add_point(RateCurve& curve, double rate, double loss) {
  const auto count = double(curve.points.size());
  // The mean of the points so far, each weighted by `keeps` for every point after it.
  const double before = (1 - std::pow(keeps, count)) / (1 - keeps);
  const double sum = curve.points.empty() ? 0 : curve.points.back().smoothed * before;
  curve.points.push_back({rate, loss, (keeps * sum + loss) / (keeps * before + 1)});
}

bool rises_far(const RateCurve& curve) {
  constexpr double far = 4;
  if (curve.points.size() < min_points) return false;
  const double lowest = lowest_point(curve).smoothed;
  return lowest > 0 && curve.points.back().smoothed > far * lowest;
}

void suggest_rate(RateCurve& curve) {
  if (curve.points.size() < min_points) {
    throw error(
        "--find-lr: the loss is not finite after {} steps, at a rate of {:.3g}: the net or the "
        "data are not fit to train, whatever the rate",
        curve.points.size(), curve.points.empty() ? 0.0 : curve.points.back().rate);
  }
  curve.lowest = lowest_point(curve).rate;
  curve.suggestion = curve.lowest / 10;
}

std::string to_csv(const RateCurve& curve) {
  std::string text = "rate,loss,smoothed\n";
  for (const RateCurve::Point& point : curve.points) {
    text += fmt::format("{:.6g},{:.6g},{:.6g}\n", point.rate, point.loss, point.smoothed);
  }
  return text;
}

std::string to_svg(const RateCurve& curve) {
  const Axes axes(curve);
  const double x = axes.x(curve.suggestion);
  return svg_document(
      720, 380, 12,
      svg_text(Axes::left, 24,
               fmt::format("Loss by learning rate; suggested {:.3g}", curve.suggestion),
               "font-size=\"14\"") +
          grid(axes) + polyline(curve, axes, &RateCurve::Point::loss, "stroke=\"#9bb8d3\"") +
          polyline(curve, axes, &RateCurve::Point::smoothed,
                   "stroke=\"#1f5f99\" stroke-width=\"2\"") +
          svg_line(x, Axes::top, x, Axes::bottom, "stroke=\"#c0392b\" stroke-dasharray=\"5 4\"") +
          svg_text((Axes::left + Axes::right) / 2, Axes::bottom + 38, "learning rate", centered));
}

}  // namespace tandem
