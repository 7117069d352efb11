// Which layers read and write what dtype. Layers with weights do the work, so that they decide; the
// others go along where a neighbour has the dtype already, and a chain without weights stays as it
// is: changing there and back again would cost more than it saves.
#include <algorithm>
#include <deque>

#include "core/base/precision.h"
#include "core/model/fields.h"
#include "core/model/layer_calls.h"
#include "core/model/layouts.h"
#include "core/model/passes.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

bool knows(const tandem_kernel& kernel, int32_t dtype) {
  return (kernel.dtypes >> dtype & 1U) != 0;
}

// Sums and scores are compared and reported: they are float32 whatever the kernel says.
bool is_result(const Layer& layer) {
  return layer.has(TANDEM_LOSS) || layer.has(TANDEM_METRIC);
}

std::vector<int> neighbours(const Net& net, const Layer& layer) {
  std::vector<int> result;
  for (const int input : layer.inputs) {
    const int producer = net.tensors[static_cast<size_t>(input)].producer;
    if (producer >= 0) result.push_back(producer);
  }
  for (const int output : layer.outputs) {
    const std::vector<int>& consumers = net.tensors[static_cast<size_t>(output)].consumers;
    result.insert(result.end(), consumers.begin(), consumers.end());
  }
  return result;
}

// Whether it adds up products: an array of its weights has several for each output. What scales,
// shifts or normalises has none that TF32 would be faster at.
bool adds_products(const Net& net, const Layer& layer) {
  return std::any_of(layer.weights.begin(), layer.weights.end(), [&](int weight) {
    const Shape& shape = net.weights[static_cast<size_t>(weight)].shape;
    return shape.c * shape.h * shape.w > 1;
  });
}

// No kernel tells whether it heeds the flag; those of other kinds of devices do not. What does not
// is priced as float32.
void allow_tf32(Net& net, const Registry& registry, const std::string& device_kind) {
  const std::vector<std::string> able = registry.backends_with(TANDEM_COMPUTES_TF32);
  if (std::find(able.begin(), able.end(), device_kind) == able.end()) {
    throw error(
        "precision tf32: devices of kind '{}' do not multiply in it{}: use --precision float32 or "
        "bfloat16 here",
        device_kind, able.empty() ? "" : fmt::format(", only {} do", fmt::join(able, ", ")));
  }
  for (Layer& layer : net.layers) {
    layer.allows_tf32 = adds_products(net, layer);
  }
}

}  // namespace

const tandem_kernel& kernel_of(const Layer& layer, const Registry& registry,
                               const std::string& device_kind) {
  try {
    return registry.kernel(layer.type->name, device_kind);
  } catch (const Error& failure) {
    throw layer_error(layer, failure.what());
  }
}

int32_t wanted_dtype(const Net& net, const Layer& layer, size_t input, int32_t made) {
  if (input == 1 && layer.has(TANDEM_SECOND_INPUT_IS_SHAPE)) return made;
  const bool label = input == 1 && layer.has(TANDEM_SECOND_INPUT_IS_LABEL);
  const bool is_label = label || layer.inputs[input] == net.label;
  return is_label ? static_cast<int32_t>(TANDEM_FLOAT32) : layer.dtype;
}

void choose_dtypes(Draft& draft, const std::string& device_kind, int32_t precision) {
  if (precision == TANDEM_FLOAT32) return;
  Net& net = draft.net;
  if (precision == tf32_precision) return allow_tf32(net, *draft.registry, device_kind);
  std::vector<bool> knowing;
  std::deque<int> chosen;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    Layer& layer = net.layers[i];
    knowing.push_back(!is_result(layer) &&
                      knows(kernel_of(layer, *draft.registry, device_kind), precision));
    if (!knowing.back() || layer.weights.empty()) continue;
    layer.dtype = precision;
    chosen.push_back(static_cast<int>(i));
  }
  if (chosen.empty()) {
    std::vector<std::string> able;
    if (precision == TANDEM_FLOAT16) able = draft.registry->backends_with(TANDEM_COMPUTES_FLOAT16);
    throw error(
        "net '{}': none of its layers with weights computes in {} on device kind '{}': use "
        "--precision float32{}",
        net.name, dtype_name(precision), device_kind,
        able.empty() ? "" : fmt::format(", or devices of kind {}", fmt::join(able, ", ")));
  }
  for (; !chosen.empty(); chosen.pop_front()) {
    for (const int next : neighbours(net, net.layers[static_cast<size_t>(chosen.front())])) {
      Layer& layer = net.layers[static_cast<size_t>(next)];
      if (!knowing[static_cast<size_t>(next)] || layer.dtype == precision) continue;
      layer.dtype = precision;
      chosen.push_back(next);
    }
  }
  for (const Layer& layer : net.layers) {
    for (const int output : layer.outputs) {
      net.tensors[static_cast<size_t>(output)].dtype = layer.dtype;
    }
  }
}

}  // namespace tandem
