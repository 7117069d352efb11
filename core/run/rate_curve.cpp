#include "core/run/rate_curve.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/svg.h"

namespace tandem {
namespace {

constexpr size_t min_points = 10;
constexpr const char* centered = "text-anchor=\"middle\"";
constexpr double keeps = 0.8;  // of the smoothed loss, at each step

// The first points are means over few losses, and may be low by chance.
const RateCurve::Point& lowest_point(const RateCurve& curve) {
  const auto first = std::ptrdiff_t(std::min(min_points, curve.points.size()) - 1);
  return *std::min_element(curve.points.begin() + first, curve.points.end(),
                           [](const auto& a, const auto& b) { return a.smoothed < b.smoothed; });
}

struct FirstLosses {
  double mean = 0, noise = 0;  // its standard deviation, from the differences of neighbors
};

// At the lowest rates, where nothing is learned yet.
FirstLosses first_losses(const RateCurve& curve) {
  const size_t count = std::min(2 * min_points, curve.points.size());
  FirstLosses result;
  double squares = 0;
  for (size_t i = 0; i < count; ++i) {
    result.mean += curve.points[i].loss / double(count);
    if (i == 0) continue;
    const double difference = curve.points[i].loss - curve.points[i - 1].loss;
    squares += difference * difference;
  }
  result.noise = std::sqrt(squares / double(2 * (count - 1)));
  return result;
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
    const int digits = std::clamp(2 - int(std::floor(std::log10(axes.high - axes.low))), 0, 6);
    text += svg_text(Axes::left - 6, y + 4, fmt::format("{:.{}f}", loss, digits),
                     "text-anchor=\"end\"");
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
  constexpr double far_above_lowest = 4, far_above_first = 1.5;
  if (curve.points.size() < min_points) return false;
  const double lowest = lowest_point(curve).smoothed, last = curve.points.back().smoothed;
  return lowest > 0 && (last > far_above_lowest * lowest ||
                        last > far_above_first * curve.points[min_points - 1].smoothed);
}

RateCurve mean_of(const std::vector<RateCurve>& curves) {
  RateCurve mean;
  size_t count = curves.front().points.size();
  for (const RateCurve& curve : curves) {
    count = std::min(count, curve.points.size());
    mean.diverged = mean.diverged || curve.diverged;
  }
  for (size_t i = 0; i < count; ++i) {
    double loss = 0;
    for (const RateCurve& curve : curves) loss += curve.points[i].loss / double(curves.size());
    add_point(mean, curves.front().points[i].rate, loss);
  }
  return mean;
}

void suggest_rate(RateCurve& curve) {
  if (curve.points.size() < min_points) {
    throw error(
        "--find-lr: the loss is not finite after {} steps, at a rate of {:.3g}: the net or the "
        "data are not fit to train, whatever the rate",
        curve.points.size(), curve.points.empty() ? 0.0 : curve.points.back().rate);
  }
  const RateCurve::Point& lowest = lowest_point(curve);
  const auto [first, noise] = first_losses(curve);
  // Among as many points as there are, the lowest is below the mean by chance alone.
  constexpr double clear = 3;
  if (!(first - lowest.smoothed > clear * noise)) {
    throw error(
        "--find-lr: at no rate up to {:.3g} did the loss fall by more than its noise (from {:.4g} "
        "to {:.4g}; it varies by {:.2g} from batch to batch): nothing can be suggested; try a "
        "larger --batch, and look at the data with 'tandem data'",
        curve.points.back().rate, first, lowest.smoothed, noise);
  }
  // The rate rises on while the loss reacts, so that both limits are passed by some steps before
  // the curve shows it. The factors are those that trained well in sweeps over five nets.
  constexpr double below_lowest = 3, below_rise = 8, above_first = 1.1;
  const auto rise = std::find_if(
      curve.points.begin() + (&lowest - curve.points.data()), curve.points.end(),
      [&](const RateCurve::Point& point) { return point.smoothed > above_first * first; });
  curve.lowest = lowest.rate;
  curve.rise = rise == curve.points.end() ? 0 : rise->rate;
  curve.suggestion = curve.lowest / below_lowest;
  if (curve.rise > 0) curve.suggestion = std::min(curve.suggestion, curve.rise / below_rise);
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
