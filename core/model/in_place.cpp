#include <algorithm>

#include "core/model/passes.h"

namespace tandem {

namespace {

const Tensor& tensor_at(const Net& net, int tensor) {
  return net.tensors[static_cast<size_t>(tensor)];
}

// Some backward still needs what the tensor's memory holds when the layer that made it is done:
// its maker's, or that of a layer which wrote over the same memory before.
bool is_read_by_its_makers(const Net& net, int tensor) {
  while (tensor_at(net, tensor).producer >= 0) {
    const Layer& maker = net.layers[static_cast<size_t>(tensor_at(net, tensor).producer)];
    if (maker.has(TANDEM_BACKWARD_READS_OUTPUTS) && maker.has_backward()) return true;
    if (!maker.runs_in_place) return false;
    tensor = maker.inputs[0];
  }
  return false;
}

bool may_run_in_place(const Net& net, const Layer& layer) {
  if (!layer.has(TANDEM_IN_PLACE) || layer.inputs.empty() || layer.outputs.empty()) return false;
  const int input = layer.inputs[0];
  const Tensor& from = tensor_at(net, input);
  const Tensor& to = tensor_at(net, layer.outputs[0]);
  if (from.view_of >= 0) return false;  // others read it
  if (from.producer < 0) return false;  // the data or the labels, which the step still owns
  const Layer& maker = net.layers[static_cast<size_t>(from.producer)];
  if (maker.has(TANDEM_LOSS) || maker.has(TANDEM_METRIC)) return false;  // a scalar to be reported
  // Its other axes may differ: the elements are the same.
  if (from.shape.n != to.shape.n || element_count(from.shape) != element_count(to.shape) ||
      from.layout != to.layout || from.dtype != to.dtype) {
    return false;
  }
  if (from.consumers.size() != 1) return false;
  if (std::count(layer.inputs.begin(), layer.inputs.end(), input) != 1) return false;
  if (net.phase != TANDEM_TRAIN) return true;
  if (from.has_gradient != to.has_gradient) return false;
  if (layer.has(TANDEM_BACKWARD_READS_INPUTS) && layer.has_backward()) return false;
  return !is_read_by_its_makers(net, input);
}

}  // namespace

void run_in_place(Draft& draft) {
  Net& net = draft.net;
  for (Layer& layer : net.layers) {
    if (!may_run_in_place(net, layer)) continue;
    layer.runs_in_place = true;
    const int from = layer.inputs[0];
    const int root = tensor_at(net, from).alias_of;
    net.tensors[static_cast<size_t>(layer.outputs[0])].alias_of = root >= 0 ? root : from;
  }
}

}  // namespace tandem
