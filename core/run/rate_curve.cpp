#include "core/run/rate_curve.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace tandem {
namespace {

constexpr size_t least_points = 10;
constexpr double keeps = 0.9;  // of the smoothed loss, at each step

// The first points are means over few losses, and may be low by chance.
const RateCurve::Point& lowest_point(const RateCurve& curve) {
  const auto first = static_cast<std::ptrdiff_t>(std::min(least_points, curve.points.size()) - 1);
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
  std::string text;
  for (double decade = axes.first_decade; decade <= axes.last_decade; ++decade) {
    const double x = axes.x(std::pow(10, decade));
    text += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">1e{4:.0f}</text>\n",
        x, Axes::top, Axes::bottom, Axes::bottom + 18, decade);
  }
  constexpr int lines = 4;
  for (int i = 0; i <= lines; ++i) {
    const double loss = axes.low + (axes.high - axes.low) * i / lines;
    text += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.3g}</text>\n",
        Axes::left, Axes::right, axes.y(loss), Axes::left - 6, axes.y(loss) + 4, loss);
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
  const auto count = static_cast<double>(curve.points.size());
  // The mean of the points so far, each weighted by `keeps` for every point after it.
  const double before = (1 - std::pow(keeps, count)) / (1 - keeps);
  const double sum = curve.points.empty() ? 0 : curve.points.back().smoothed * before;
  curve.points.push_back({rate, loss, (keeps * sum + loss) / (keeps * before + 1)});
}

bool rises_far(const RateCurve& curve) {
  constexpr double far = 4;
  if (curve.points.size() < least_points) return false;
  const double lowest = lowest_point(curve).smoothed;
  return lowest > 0 && curve.points.back().smoothed > far * lowest;
}

void suggest_rate(RateCurve& curve) {
  if (curve.points.size() < least_points) {
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
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 380\" width=\"720\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"720\" height=\"380\" "
      "fill=\"white\"/>\n";
  text += fmt::format(
      "<text x=\"{}\" y=\"24\" font-size=\"14\">Loss by learning rate; suggested {:.3g}</text>\n",
      Axes::left, curve.suggestion);
  text += grid(axes);
  text += polyline(curve, axes, &RateCurve::Point::loss, "stroke=\"#9bb8d3\"");
  text +=
      polyline(curve, axes, &RateCurve::Point::smoothed, "stroke=\"#1f5f99\" stroke-width=\"2\"");
  text += fmt::format(
      "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#c0392b\" "
      "stroke-dasharray=\"5 4\"/>\n",
      axes.x(curve.suggestion), Axes::top, Axes::bottom);
  text +=
      fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">learning rate</text>\n</svg>\n",
                  (Axes::left + Axes::right) / 2, Axes::bottom + 38);
  return text;
}

}  // namespace tandem
