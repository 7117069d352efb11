// How well a net predicts several labels or numbers: figures of each, and their means.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "include/tandem/observer.h"

namespace tandem {

[[nodiscard]] double sigmoid(double score);

// The area under the steps of precision over recall, with equal scores taken together, as
// average_precision_score of scikit-learn: the mean precision at each image that has the label. NaN
// if none has it. A score that is not a number ranks last.
[[nodiscard]] double average_precision(const std::vector<float>& scores,
                                       const std::vector<bool>& truth);

class TargetTally {
 public:
  // The data set, whose task is not classes, outlives it. `threshold`: the probability from which
  // on a label counts as predicted.
  TargetTally(const Dataset& dataset, double threshold);

  // The net's class_count() scores of a sample.
  void add(int64_t index, const float* scores);
  // Writes `figures`, `metrics` and `score`. Labels that no image has are no part of the means.
  void finish(Evaluation& evaluation) const;

 private:
  [[nodiscard]] TargetFigure label_figure(size_t label) const;
  [[nodiscard]] TargetFigure value_figure(size_t value) const;

  const Dataset& dataset_;
  double threshold_;
  std::vector<std::vector<float>> scores_, truth_;  // of each label or value
};

}  // namespace tandem
