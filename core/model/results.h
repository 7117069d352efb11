// The results of a net: its losses, metrics and prediction. Caffe's loss_weight on a layer that is
// not a loss adds the sum of its output over the batch to the loss. A SumLoss layer computes that
// here, so that each device can have a part of the batch.
#pragma once

#include "core/model/draft.h"

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

}  // namespace tandem
