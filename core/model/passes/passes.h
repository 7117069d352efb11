// The passes of build_net() over a draft, in their order, and what they share. A pass that is given
// a kind of device asks its kernels.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/model/net/draft.h"

namespace tandem {

// The layers of the phase with their attributes, tensors in single-assignment form, shapes, loss
// weights and declared weights. Error with the layer, its type and file:line.
[[nodiscard]] Draft resolve(const NetDefinition& definition, const Registry& registry,
                            const NetOptions& options, int32_t phase);

// Caffe's nets write a normalization with factors and biases as a BatchNorm and a Scale, and one
// kernel, BatchNormScale, computes both. Joins each BatchNorm with the Scale that comes next and
// alone reads its output, if the Scale has a factor and a bias for each channel, no other layer
// shares their weights, the BatchNorm's output is no part of the loss, a gradient passes between
// the two, and the kind of device has a kernel. The layer keeps the BatchNorm's name and has the
// Scale's in Layer::joined_scale. The weights keep their names and places, so that files of weights
// are the same.
void join_scales(const NetDefinition& definition, Draft& draft, const std::string& device_kind);

// Whether a loss_weight is not 0.
[[nodiscard]] inline bool any_nonzero(const std::vector<double>& loss_weights) {
  return std::any_of(loss_weights.begin(), loss_weights.end(), [](double w) { return w != 0; });
}

// Caffe's loss_weight on a layer that is not a loss adds the sum of its output over the batch to
// the loss: such layers get a SumLoss of their output, so that each device can have a part of the
// batch.
void insert_loss_sums(const NetDefinition& definition, Draft& draft);
// The attributes of a Reduction over the batch that is a loss, changed to reduce each sample;
// insert_loss_sums() sums the samples. Those of any other layer are returned as they are.
[[nodiscard]] std::shared_ptr<const Attributes> with_axis_of_samples(
    const LayerDefinition& definition, const std::shared_ptr<const Attributes>& attributes);

// Which layers have backward passes and which tensors gradients: those between a loss and a trained
// weight. Error if there is nothing to train.
void find_gradients(Draft& draft);
// A tensor whose gradient several layers would write gets a Split.
void insert_splits(Draft& draft);

// Gives layers and tensors a dtype. Layers with weights take the wanted precision where their
// kernels support it. Layers without weights take it where a neighbor has it. A chain without
// weights stays float32: converting there and back would cost more than it saves. Weights, labels,
// losses and metrics are always float32. `precision`: TANDEM_FLOAT32, a 16-bit dtype or
// tf32_precision. Error if no layer can have it.
void choose_dtypes(Draft& draft, const std::string& device_kind, int32_t precision);
// The dtype in which a layer reads an input that has the dtype `given`.
[[nodiscard]] int32_t wanted_dtype(const Net& net, const Layer& layer, size_t input, int32_t given);

// Gives each layer the layout option of its kernel with the least extra bytes and reorders in the
// whole net, and inserts Reorder layers where neighbors differ in layout or dtype.
void choose_layouts(Draft& draft, const std::string& device_kind);

// Outputs of inserted Splits become views of their input, where nothing is reordered.
void view_splits(Draft& draft);

// Puts first the input of a sum whose producer can add the other one, so that the sum runs in place
// there. Before run_in_place().
void order_sums(Draft& draft, const std::string& device_kind);
// Layers that may write over their input do so.
void run_in_place(Draft& draft);
// Gradients of the inputs of a sum become views of the gradient of its output.
void view_gradients_of_sums(Draft& draft);
// Whether the layer adds its inputs, so that their gradients are that of its output.
[[nodiscard]] bool is_plain_sum(const Layer& layer);

// Lets the kernel of one layer do the work of its neighbors, so that a tensor is read and written
// once: fuses sums and activations that run in place into the upstream layer, where its kernel for
// the device kind can compute them. Each layer stays in the net, with the same results. An
// activation keeps its backward pass, unless that kernel or the one of the layer after the
// activation can compute it, too.
void fuse_layers(Draft& draft, const std::string& device_kind);

}  // namespace tandem
