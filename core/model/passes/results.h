// The results of a net: its losses, metrics and prediction. Caffe's loss_weight on a layer that is
// not a loss adds the sum of its output over the batch to the loss. A SumLoss layer computes that
// here, so that each device can have a part of the batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/model/net/draft.h"

namespace tandem {

// Layers with a loss_weight that are not losses get a SumLoss of their output.
void insert_loss_sums(const NetDefinition& definition, Draft& draft);
// The attributes of a Reduction over the batch that is a loss, changed to reduce each sample;
// insert_loss_sums() sums the samples. Those of any other layer are returned as they are.
[[nodiscard]] std::shared_ptr<const Attributes> with_axis_of_samples(
    const LayerDefinition& definition, const std::shared_ptr<const Attributes>& attributes);

// Sets net.scalars and net.prediction.
void find_results(Draft& draft);
// The tensor of scores that the last loss or metric compares with the labels, as auxiliary heads
// come before the main one. Without one: the last output that no layer reads. -1: there is none.
[[nodiscard]] int find_prediction(const Net& net);

// Whether a sample has a label, or is a row without one, which counts nowhere.
[[nodiscard]] inline bool has_label(float label) {
  return label >= 0;
}
// How many rows of a batch with these labels the scalar is the mean of: those that have a label,
// without those of the ignore_label of its layer. Means of batches are added with this weight.
[[nodiscard]] int64_t rows_of_mean(const Net& net, const Scalar& scalar,
                                   std::span<const float> labels);

}  // namespace tandem
