#include "core/model/passes/passes.h"

#include <algorithm>
#include <vector>

namespace tandem {

namespace {

// By tensor: whether a backward pass still reads the values in its memory, that of its producer or
// of an earlier layer that wrote the same memory in place.
using ReadBackward = std::vector<bool>;

// Of the outputs of a layer, once it is known whether it runs in place.
bool is_read_backward(const Layer& maker, const ReadBackward& known) {
  if (maker.has(TANDEM_BACKWARD_READS_OUTPUTS) && maker.has_backward()) return true;
  return maker.runs_in_place && known[size_t(maker.inputs[0])];
}

bool may_run_in_place(const Net& net, const Layer& layer, const ReadBackward& read_backward) {
  if (!layer.has(TANDEM_IN_PLACE) || layer.inputs.empty() || layer.outputs.empty()) return false;
  const int input = layer.inputs[0];
  const Tensor& from = net.tensor(input);
  const Tensor& to = net.tensor(layer.outputs[0]);
  if (from.view_of >= 0) return false;  // other tensors have the same memory
  if (from.producer < 0) return false;  // the batch belongs to the whole step
  const Layer& maker = net.layer(from.producer);
  if (maker.is_result()) return false;
  // Other axes may differ, as the elements are the same.
  if (from.shape.n != to.shape.n || element_count(from.shape) != element_count(to.shape) ||
      from.layout != to.layout || from.dtype != to.dtype) {
    return false;
  }
  if (from.consumers.size() != 1) return false;
  if (std::count(layer.inputs.begin(), layer.inputs.end(), input) != 1) return false;
  if (net.phase != TANDEM_TRAIN) return true;
  if (from.has_gradient != to.has_gradient) return false;
  if (layer.backward_reads_inputs() && layer.has_backward()) return false;
  return !read_backward[size_t(input)];
}

// Whether the input's gradient can be in the memory of the output's, which other layers read after
// the producer of the input: nothing may write it in place.
bool can_share_gradient(const Net& net, int input, int output) {
  const Tensor &from = net.tensor(input), &to = net.tensor(output);
  return from.alias_of < 0 && from.producer >= 0 && !net.layer(from.producer).is_result() &&
         from.has_gradient && to.has_gradient && from.layout == to.layout && from.dtype == to.dtype;
}

}  // namespace

bool is_plain_sum(const Layer& layer) {
  if (!layer.is("Eltwise")) return false;
  if (layer.attributes->text("operation") != "SUM") return false;
  const std::vector<double>& factors = layer.attributes->numbers("coeff");
  return std::all_of(factors.begin(), factors.end(), [](double factor) { return factor == 1; });
}

void view_splits(Draft& draft) {
  Net& net = draft.net;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    if (draft.more[i].definition >= 0 || !layer.is("Split")) continue;
    const Tensor& from = net.tensor(layer.inputs[0]);
    for (const int output : layer.outputs) {
      Tensor& to = net.tensor(output);
      if (to.layout == from.layout && to.dtype == from.dtype) to.view_of = layer.inputs[0];
    }
  }
}

void run_in_place(Draft& draft) {
  Net& net = draft.net;
  ReadBackward read_backward(net.tensors.size(), false);
  for (Layer& layer : net.layers) {
    if (may_run_in_place(net, layer, read_backward)) {
      layer.runs_in_place = true;
      const int from = layer.inputs[0];
      const int root = net.tensor(from).alias_of;
      net.tensor(layer.outputs[0]).alias_of = root >= 0 ? root : from;
    }
    const bool is_read = is_read_backward(layer, read_backward);
    for (const int output : layer.outputs) read_backward[size_t(output)] = is_read;
  }
}

void view_gradients_of_sums(Draft& draft) {
  Net& net = draft.net;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    if (!layer.wants_backward_data || !is_plain_sum(layer)) continue;
    std::vector<int> inputs;
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      if (draft.more[i].takes_gradient[k]) inputs.push_back(layer.inputs[k]);
    }
    const int output = layer.outputs[0];
    const bool all = std::all_of(inputs.begin(), inputs.end(),
                                 [&](int input) { return can_share_gradient(net, input, output); });
    if (!all) continue;
    for (const int input : inputs) {
      const bool is_shared = layer.runs_in_place && input == layer.inputs[0];
      if (!is_shared) net.tensor(input).gradient_view_of = output;
    }
  }
}

}  // namespace tandem
