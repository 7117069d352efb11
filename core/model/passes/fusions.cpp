#include "core/model/passes/passes.h"

#include <utility>

#include "core/model/net/layer_calls.h"

namespace tandem {

namespace {

// Whether its forward pass is nothing but a ReLU and saves nothing for its backward pass. Another
// activation is one of a newer ABI.
bool is_plain_relu(const Net& net, const Layer& layer) {
  return layer.weights.empty() && layer.has(TANDEM_SAVES_NOTHING) &&
         !layer.has(TANDEM_BATCH_STATISTICS) && !layer.is_result() &&
         layer_activation(layer, net.phase, input_shapes(net, layer)) == TANDEM_ACTIVATION_RELU;
}

// The last layer that writes the tensor's values; -1: they are an input of the net.
int writer_of(const Net& net, int tensor) {
  while (net.tensor(tensor).view_of >= 0) tensor = net.tensor(tensor).view_of;
  return net.tensor(tensor).producer;
}

// The layer whose only output only `follower` reads, as its input `k`; -1: there is none.
int sole_producer_of(const Net& net, const Layer& follower, size_t k) {
  const Tensor& tensor = net.tensor(follower.inputs[k]);
  if (tensor.producer < 0 || tensor.view_of >= 0 || tensor.consumers.size() != 1) return -1;
  const Layer& maker = net.layer(tensor.producer);
  return maker.is_result() || maker.outputs.size() != 1 ? -1 : tensor.producer;
}

// Whether the sum can run in the memory of its input `k`, which the layer makes (run_in_place()),
// and the other input is in the same form.
bool fits(const Net& net, const Layer& sum, size_t k, const Layer& maker) {
  const Tensor &made = net.tensor(sum.inputs[k]), &other = net.tensor(sum.inputs[1 - k]);
  if (made.dtype != other.dtype || made.layout != other.layout) return false;
  if (made.has_gradient != net.tensor(sum.outputs[0]).has_gradient) return false;
  return !(maker.has(TANDEM_BACKWARD_READS_OUTPUTS) && maker.has_backward());
}

// The layer that makes input `k` of the sum of two and whose kernel can add the other one, which is
// there before it runs; -1: there is none. A layer that strategies divide would add it to a part.
int adder_of(const Draft& draft, const Layer& sum, size_t k, const std::string& device_kind) {
  const Net& net = draft.net;
  if (sum.inputs.size() != 2 || sum.inputs[0] == sum.inputs[1] || !is_plain_sum(sum)) return -1;
  const int producer = sole_producer_of(net, sum, k);
  if (producer < 0 || writer_of(net, sum.inputs[1 - k]) >= producer) return -1;
  const Layer& maker = net.layer(producer);
  if (maker.has(TANDEM_SLICED_OUTPUTS | TANDEM_SLICED_INPUTS)) return -1;
  if (!fits(net, sum, k, maker)) return -1;
  return kernel_of(maker, *draft.registry, device_kind).fuses_sum == 1 ? producer : -1;
}

void fuse_sums(Draft& draft, const std::string& device_kind) {
  for (Layer& sum : draft.net.layers) {
    const int producer = sum.runs_in_place ? adder_of(draft, sum, 0, device_kind) : -1;
    if (producer < 0) continue;
    draft.net.layer(producer).addend = sum.inputs[1];
    sum.fused_into = producer;
  }
}

// The layer whose kernel writes the only input of an activation that runs in place: its producer,
// or where that is a fused sum, what it is fused into; -1: there is none.
int maker_of_input(const Net& net, const Layer& follower) {
  if (!follower.runs_in_place || follower.inputs.size() != 1 || follower.outputs.size() != 1) {
    return -1;
  }
  const int producer = sole_producer_of(net, follower, 0);
  if (producer < 0 || net.layer(producer).fused_into < 0) return producer;
  return is_plain_sum(net.layer(producer)) ? net.layer(producer).fused_into : -1;
}

void fuse_activation(Draft& draft, Layer& follower, const std::string& device_kind) {
  Net& net = draft.net;
  const int producer = maker_of_input(net, follower);
  if (producer < 0 || follower.addend >= 0 || !is_plain_relu(net, follower)) return;
  Layer& maker = net.layer(producer);
  const tandem_kernel& kernel = kernel_of(maker, *draft.registry, device_kind);
  if ((kernel.fused_activations >> TANDEM_ACTIVATION_RELU & 1U) == 0) return;
  maker.activation = TANDEM_ACTIVATION_RELU;
  follower.fused_into = producer;
  // A sum whose inputs share its gradient has no backward pass that could apply this one. Nor does
  // a kernel apply it that has added the sum's other input.
  if ((kernel.fused_gradients >> TANDEM_ACTIVATION_RELU & 1U) != 0 &&
      !net.makes_gradient_views(producer) && maker.addend < 0) {
    follower.gradient_fused_into = producer;
  }
}

// Lets the layer's kernel compute the backward pass of an activation that ran in place before it.
void fuse_gradient_before(Draft& draft, size_t index, const std::string& device_kind) {
  Net& net = draft.net;
  Layer& layer = net.layers[index];
  if (layer.inputs.empty() || layer.runs_in_place || !draft.more[index].takes_gradient[0]) return;
  const int producer = net.tensor(layer.inputs[0]).producer;
  if (producer < 0) return;
  Layer& before = net.layer(producer);
  if (!before.runs_in_place || before.inputs.size() != 1 || before.gradient_fused_into >= 0 ||
      !is_plain_relu(net, before)) {
    return;
  }
  const tandem_kernel& kernel = kernel_of(layer, *draft.registry, device_kind);
  if ((kernel.gradients_before >> TANDEM_ACTIVATION_RELU & 1U) == 0) return;
  layer.activation_before = TANDEM_ACTIVATION_RELU;
  before.gradient_fused_into = static_cast<int>(index);
}

}  // namespace

void order_sums(Draft& draft, const std::string& device_kind) {
  for (size_t i = 0; i < draft.net.layers.size(); ++i) {
    Layer& sum = draft.net.layers[i];
    if (adder_of(draft, sum, 1, device_kind) < 0) continue;
    std::swap(sum.inputs[0], sum.inputs[1]);
    std::vector<bool>& takes = draft.more[i].takes_gradient;
    std::vector<bool>::swap(takes[0], takes[1]);
  }
}

void fuse_layers(Draft& draft, const std::string& device_kind) {
  fuse_sums(draft, device_kind);
  Net& net = draft.net;
  for (Layer& layer : net.layers) fuse_activation(draft, layer, device_kind);
  for (size_t i = 0; i < net.layers.size(); ++i) fuse_gradient_before(draft, i, device_kind);
}

}  // namespace tandem
