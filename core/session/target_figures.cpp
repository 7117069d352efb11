#include "core/session/target_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tandem {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

double quotient(double part, double whole) {
  return whole > 0 ? part / whole : none;
}

// Of those figures that there are; NaN if there is none.
double mean_of(const std::vector<TargetFigure>& figures, double TargetFigure::*figure) {
  double sum = 0, count = 0;
  for (const TargetFigure& one : figures) {
    if (!std::isfinite(one.*figure)) continue;
    sum += one.*figure;
    ++count;
  }
  return quotient(sum, count);
}

}  // namespace

double sigmoid(double score) {
  return 1 / (1 + std::exp(-score));
}

double average_precision(const std::vector<float>& scores, const std::vector<bool>& truth) {
  constexpr float last = -std::numeric_limits<float>::infinity();
  const auto score = [&](size_t i) { return std::isnan(scores[i]) ? last : scores[i]; };
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score(a) > score(b); });
  double found = 0, sum = 0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    double here = 0;
    for (; end < order.size() && score(order[end]) == score(order[begin]); ++end) {
      here += truth[order[end]] ? 1 : 0;
    }
    found += here;
    sum += here * found / static_cast<double>(end);
    begin = end;
  }
  return quotient(sum, found);
}

TargetTally::TargetTally(const Dataset& dataset, double threshold)
    : dataset_(dataset),
      threshold_(threshold),
      scores_(size_t(dataset.class_count())),
      truth_(size_t(dataset.class_count())) {}

void TargetTally::add(int64_t index, const float* scores) {
  std::vector<float> values(scores_.size());
  dataset_.values(index, values.data());
  for (size_t k = 0; k < scores_.size(); ++k) {
    scores_[k].push_back(scores[k]);
    truth_[k].push_back(values[k]);
  }
}

TargetFigure TargetTally::label_figure(size_t label) const {
  TargetFigure result;
  const std::vector<float>& scores = scores_[label];
  std::vector<bool> truth;
  double both = 0, predicted = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    truth.push_back(truth_[label][i] != 0);
    const bool is_predicted = sigmoid(scores[i]) >= threshold_;
    result.images += truth.back() ? 1 : 0;
    predicted += is_predicted ? 1 : 0;
    both += truth.back() && is_predicted ? 1 : 0;
  }
  const auto images = static_cast<double>(result.images);
  result.average_precision = average_precision(scores, truth);
  result.precision = quotient(both, predicted);
  result.recall = quotient(both, images);
  result.f1 = images > 0 ? 2 * both / (predicted + images) : none;
  return result;
}

TargetFigure TargetTally::value_figure(size_t value) const {
  TargetFigure result;
  const TargetScale& scale = dataset_.target_scale();
  double errors = 0, squares = 0, mean = 0, spread = 0;
  for (size_t i = 0; i < scores_[value].size(); ++i) {
    const double truth = truth_[value][i];
    double predicted = scores_[value][i];
    if (!scale.means.empty()) {
      predicted = scale.means[value] + scale.deviations[value] * predicted;
    }
    errors += std::abs(predicted - truth);
    squares += (predicted - truth) * (predicted - truth);
    ++result.images;
    const double before = truth - mean;  // Welford's sums
    mean += before / static_cast<double>(result.images);
    spread += before * (truth - mean);
  }
  result.mean_absolute_error = quotient(errors, static_cast<double>(result.images));
  result.r2 = 1 - quotient(squares, spread);
  return result;
}

void TargetTally::finish(Evaluation& evaluation) const {
  const bool are_labels = dataset_.task() == TANDEM_TASK_LABELS;
  const std::vector<std::string> names = dataset_.class_names();
  for (size_t k = 0; k < scores_.size(); ++k) {
    evaluation.figures.push_back(are_labels ? label_figure(k) : value_figure(k));
    evaluation.figures.back().name = names[k];
  }
  const auto& figures = evaluation.figures;
  if (are_labels) {
    evaluation.metrics = {{"mAP", mean_of(figures, &TargetFigure::average_precision), true},
                          {"F1", mean_of(figures, &TargetFigure::f1), true}};
    evaluation.score = evaluation.metrics[0].value;
    evaluation.has_score = std::isfinite(evaluation.score);
  } else {
    evaluation.metrics = {{"MAE", mean_of(figures, &TargetFigure::mean_absolute_error), false},
                          {"R2", mean_of(figures, &TargetFigure::r2), false}};
  }
}

}  // namespace tandem
