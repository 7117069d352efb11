// The results of a net: its losses, metrics and prediction.
#pragma once

#include <cstdint>
#include <span>

#include "core/model/net/draft.h"

namespace tandem {

// Sets net.scalars and net.prediction.
void find_results(Draft& draft);
// The tensor of scores that the last loss or metric compares with the labels, as auxiliary heads
// come before the main one. Without one: the last output that no layer reads. -1: there is none.
[[nodiscard]] int find_prediction(const Net& net);

// Whether the tensor is what samples have instead of a class: several labels, or numbers.
[[nodiscard]] bool is_targets(const Net& net, int tensor);
// Whether a sample has a label, or is a row without one, which counts nowhere.
[[nodiscard]] inline bool has_label(float label) {
  return label >= 0;
}
// How many rows of a batch with these labels the scalar is the mean of: those that have a label,
// without those of the ignore_label of its layer. Means of batches are added with this weight.
[[nodiscard]] int64_t rows_of_mean(const Net& net, const Scalar& scalar,
                                   std::span<const float> labels);

}  // namespace tandem
