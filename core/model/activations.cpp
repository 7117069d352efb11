// An activation behind a layer reads and writes the same memory once more. Where it runs in place
// and the layer's kernel can do it along, its forward pass is left to that kernel.
#include "core/model/layer_calls.h"
#include "core/model/layouts.h"
#include "core/model/passes.h"

namespace tandem {

namespace {

// The layer that alone writes what `follower` reads and changes in place; -1: there is none.
int maker_of(const Net& net, const Layer& follower) {
  if (!follower.runs_in_place || follower.inputs.size() != 1 || follower.outputs.size() != 1) {
    return -1;
  }
  const int input = follower.inputs[0];
  const Tensor& tensor = net.tensors[static_cast<size_t>(input)];
  if (tensor.producer < 0 || tensor.view_of >= 0 || tensor.consumers.size() != 1) return -1;
  const Layer& maker = net.layers[static_cast<size_t>(tensor.producer)];
  const bool is_result = maker.has(TANDEM_LOSS) || maker.has(TANDEM_METRIC);
  return is_result || maker.outputs.size() != 1 || maker.fused_into >= 0 ? -1 : tensor.producer;
}

// Leaves its forward pass nothing but the activation, which no backward pass has to know of.
bool is_nothing_else(const Layer& follower) {
  return follower.weights.empty() && follower.has(TANDEM_SAVES_NOTHING) &&
         !follower.has(TANDEM_BATCH_STATISTICS) && !follower.has(TANDEM_LOSS) &&
         !follower.has(TANDEM_METRIC);
}

}  // namespace

void join_activations(Draft& draft, const std::string& device_kind) {
  Net& net = draft.net;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    Layer& follower = net.layers[i];
    const int maker = maker_of(net, follower);
    if (maker < 0 || !is_nothing_else(follower)) continue;
    const int32_t activation = layer_activation(follower, net.phase, input_shapes(net, follower));
    if (activation != TANDEM_ACTIVATION_RELU)
      continue;  // what a newer plugin knows has no name here
    Layer& made_by = net.layers[static_cast<size_t>(maker)];
    const tandem_kernel& kernel = kernel_of(made_by, *draft.registry, device_kind);
    if ((kernel.activations >> activation & 1U) == 0) continue;
    made_by.activation = activation;
    follower.fused_into = maker;
  }
}

}  // namespace tandem
