#include "core/run/rate_curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

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

size_t first_count(const RateCurve& curve) {
  return std::min(2 * min_points, curve.points.size());
}

// At the lowest rates, where nothing is learned yet.
FirstLosses first_losses(const RateCurve& curve) {
  const size_t count = first_count(curve);
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
    double last_rate = curve.points.back().rate;
    const auto lowest = lowest_point(curve);
    low = lowest.smoothed;
    high = curve.points.front().smoothed;
    for (const RateCurve::Point& point : curve.points) {
      // The end of a curve that diverges would flatten the rest.
      if (point.rate <= lowest.rate) high = std::max(high, point.smoothed);
    }
    for (const RateCurve::Trial& trial : curve.trials) {
      last_rate = std::max(last_rate, trial.rate);
      low = std::min(low, trial.loss);
    }
    first_decade = std::floor(std::log10(curve.points.front().rate) + 1e-9);
    last_decade = std::max(first_decade + 1, std::ceil(std::log10(last_rate) - 1e-9));
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

// Numbers like 0.1, 0.3, 1, about 3 times apart; 0 is 1.
double rate_of(int index) {
  const int decade = index >= 0 ? index / 2 : (index - 1) / 2;
  return (index % 2 == 0 ? 1 : 3) * std::pow(10.0, decade);
}

// Of the highest such number that is at most `rate`.
int index_of(double rate) {
  int index = 2 * int(std::floor(std::log10(rate)));
  while (rate_of(index + 1) <= rate * (1 + 1e-9)) ++index;
  return index;
}

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

// Those of the longest trials are larger, and those of trials that diverged white.
std::string circles(const RateCurve& curve, const Axes& axes) {
  std::string text;
  for (const RateCurve::Trial& trial : curve.trials) {
    text += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" stroke=\"#803d00\">"
        "<title>{} steps at {:.3g}: loss {:.4g}{}</title></circle>\n",
        axes.x(trial.rate), axes.y(trial.loss), trial.steps == curve.trials.back().steps ? 6 : 4,
        std::isfinite(trial.loss) ? "#e67e22" : "white", trial.steps, trial.rate, trial.loss,
        curve.is_scored ? fmt::format(", score {:.4g}", trial.score) : "");
  }
  return text;
}

std::string legend(const RateCurve& curve) {
  const int64_t first = curve.trials.front().steps, last = curve.trials.back().steps;
  return fmt::format(
      "line: a run whose rate rises; circles: {} loss of trials of {} steps (white: diverged)",
      curve.is_validated ? "validation" : "training",
      first == last ? std::to_string(last) : fmt::format("{} and {} (larger)", first, last));
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
  // Losses of trained weights, or of few images, are small and vary by several times.
  constexpr double clear = 3;
  const auto [first, noise] = first_losses(curve);
  return lowest > 0 && last > first + clear * noise &&
         (last > far_above_lowest * lowest ||
          last > far_above_first * curve.points[min_points - 1].smoothed);
}

std::vector<double> trial_rates(const RateCurve& curve) {
  if (curve.points.size() < min_points) {
    throw error(
        "--find-lr: the loss is not finite after {} steps, at a rate of {:.3g}: the net or the "
        "data are not fit to train, whatever the rate",
        curve.points.size(), curve.points.empty() ? 0.0 : curve.points.back().rate);
  }
  constexpr int count = 6;
  const int highest = index_of(curve.points.back().rate);
  std::vector<double> rates;
  for (int i = 0; i < count; ++i) rates.push_back(rate_of(highest - i));
  return rates;
}

double rate_beyond(const std::vector<RateCurve::Trial>& trials) {
  if (trials.size() >= max_rates) return 0;
  const auto [lowest, highest] = std::minmax_element(
      trials.begin(), trials.end(), [](const auto& a, const auto& b) { return a.rate < b.rate; });
  const double best = best_of(trials, 1).front().rate;
  if (best == lowest->rate) return rate_of(index_of(best) - 1);
  return best == highest->rate ? rate_of(index_of(best) + 1) : 0;
}

std::vector<RateCurve::Trial> best_of(std::vector<RateCurve::Trial> trials, size_t count) {
  const auto by_score = [](const RateCurve::Trial& one) {
    return std::pair(!one.learns, -one.score);
  };
  const auto by_loss = [](const RateCurve::Trial& one) { return std::pair(one.loss, one.rate); };
  std::vector<RateCurve::Trial> best;
  while (best.size() < count && !trials.empty()) {
    const RateCurve::Trial top =
        *std::min_element(trials.begin(), trials.end(),
                          [&](const auto& a, const auto& b) { return by_score(a) < by_score(b); });
    // Of the difference of two shares.
    const double error =
        top.samples > 0 ? std::sqrt(2 * top.score * (1 - top.score) / double(top.samples)) : 0;
    auto next = trials.end();
    for (auto trial = trials.begin(); trial != trials.end(); ++trial) {
      const bool is_as_good = trial->learns == top.learns && trial->score >= top.score - error;
      if (is_as_good && (next == trials.end() || by_loss(*trial) < by_loss(*next))) next = trial;
    }
    best.push_back(*next);
    trials.erase(next);
  }
  return best;
}

double last_loss(const RateCurve& trial) {
  const auto count = std::ptrdiff_t((trial.points.size() + 2) / 3);
  double sum = 0;
  for (auto point = trial.points.end() - count; point != trial.points.end(); ++point) {
    sum += point->loss;
  }
  return sum / double(count);
}

bool learns(const RateCurve& curve, const RateCurve& trial) {
  const auto [first, noise] = first_losses(curve);
  // Of the difference of two means.
  const double deviation =
      noise * std::sqrt(1.0 / double(first_count(curve)) + 3.0 / double(trial.points.size()));
  constexpr double clear = 3;
  return first - last_loss(trial) > clear * deviation;
}

bool beats_constant_scores(const Evaluation& evaluation, int64_t classes) {
  if (!evaluation.has_accuracy || evaluation.samples == 0) return true;
  const auto samples = double(evaluation.samples);
  double most = 1 / double(classes), entropy = std::log(double(classes));
  if (!evaluation.confusion.empty()) {
    most = entropy = 0;
    for (const std::vector<int64_t>& predicted : evaluation.confusion) {
      const double share =
          double(std::accumulate(predicted.begin(), predicted.end(), int64_t{0})) / samples;
      most = std::max(most, share);
      if (share > 0) entropy -= share * std::log(share);
    }
  }
  constexpr double clear = 2, clearly_below = 0.98;
  return evaluation.top1 > most + clear * std::sqrt(most * (1 - most) / samples) ||
         evaluation.loss < clearly_below * entropy;
}

std::string to_csv(const RateCurve& curve) {
  std::string text = "rate,loss,smoothed,trial_steps,trial_score\n";
  for (const RateCurve::Point& point : curve.points) {
    text += fmt::format("{:.6g},{:.6g},{:.6g},,\n", point.rate, point.loss, point.smoothed);
  }
  for (const RateCurve::Trial& trial : curve.trials) {
    text += fmt::format("{:.6g},{:.6g},,{},{}\n", trial.rate, trial.loss, trial.steps,
                        curve.is_scored ? fmt::format("{:.6g}", trial.score) : "");
  }
  return text;
}

std::string to_svg(const RateCurve& curve) {
  const Axes axes(curve);
  const double x = axes.x(curve.suggestion);
  const std::string dashes = "stroke=\"#c0392b\" stroke-dasharray=\"5 4\"";
  return svg_document(
      720, 400, 12,
      svg_text(Axes::left, 24,
               fmt::format("Loss by learning rate; suggested {:.3g}", curve.suggestion),
               "font-size=\"14\"") +
          grid(axes) + polyline(curve, axes, &RateCurve::Point::loss, "stroke=\"#9bb8d3\"") +
          polyline(curve, axes, &RateCurve::Point::smoothed,
                   "stroke=\"#1f5f99\" stroke-width=\"2\"") +
          svg_line(x, Axes::top, x, Axes::bottom, dashes) + circles(curve, axes) +
          svg_text((Axes::left + Axes::right) / 2, Axes::bottom + 36, "learning rate", centered) +
          svg_text((Axes::left + Axes::right) / 2, Axes::bottom + 56, legend(curve), centered));
}

}  // namespace tandem
