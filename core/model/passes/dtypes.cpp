#include "core/model/passes/passes.h"
#include "core/model/passes/results.h"

#include <algorithm>
#include <deque>

#include "core/device/machine.h"
#include "core/model/net/layer_calls.h"
#include "core/plugin/layer_questions.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

bool supports(const tandem_kernel& kernel, int32_t dtype) {
  return (kernel.dtypes >> dtype & 1U) != 0;
}

std::vector<int> neighbors(const Net& net, const Layer& layer) {
  std::vector<int> result;
  for (const int input : layer.inputs) {
    const int producer = net.tensor(input).producer;
    if (producer >= 0) result.push_back(producer);
  }
  for (const int output : layer.outputs) {
    const std::vector<int>& consumers = net.tensor(output).consumers;
    result.insert(result.end(), consumers.begin(), consumers.end());
  }
  return result;
}

// Whether the layer computes sums of products: one of its weights has several values for each
// output. Layers that scale, shift or normalize have none, and TF32 would not make them faster.
bool sums_products(const Net& net, const Layer& layer) {
  return std::any_of(layer.weights.begin(), layer.weights.end(), [&](int weight) {
    const Shape& shape = net.weight(weight).shape;
    return shape.c * shape.h * shape.w > 1;
  });
}

// A kernel does not report whether it uses the flag; only those of backends with the capability do.
// Layers without the flag are estimated as float32.
void allow_tf32(Net& net, const Registry& registry, const std::string& device_kind) {
  const std::vector<std::string> able = registry.backends_with(&computes_tf32);
  if (std::find(able.begin(), able.end(), device_kind) == able.end()) {
    throw error(
        "precision tf32: {} devices do not support it{}: use --precision float32 or bfloat16 here",
        device_kind, able.empty() ? "" : fmt::format(" (only {} do)", fmt::join(able, ", ")));
  }
  for (Layer& layer : net.layers) {
    layer.allows_tf32 = sums_products(net, layer);
  }
}

}  // namespace

int32_t wanted_dtype(const Net& net, const Layer& layer, size_t input, int32_t given) {
  if (input_role(*layer.type, input) == TANDEM_INPUT_SHAPE) return given;
  const bool is_plain = is_label(*layer.type, input) || layer.inputs[input] == net.label ||
                        is_targets(net, layer.inputs[input]);
  return is_plain ? static_cast<int32_t>(TANDEM_FLOAT32) : layer.dtype;
}

void choose_dtypes(Draft& draft, const std::string& device_kind, int32_t precision) {
  if (precision == TANDEM_FLOAT32) return;
  Net& net = draft.net;
  if (precision == tf32_precision) return allow_tf32(net, *draft.registry, device_kind);
  std::vector<bool> can_have;
  std::deque<int> chosen;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    Layer& layer = net.layers[i];
    // Losses and metrics are compared and reported: float32, whatever their kernels support.
    can_have.push_back(!layer.is_result() &&
                       supports(kernel_of(layer, *draft.registry, device_kind), precision));
    if (!can_have.back() || layer.weights.empty()) continue;
    layer.dtype = precision;
    chosen.push_back(static_cast<int>(i));
  }
  if (chosen.empty()) {
    std::vector<std::string> able;
    if (precision == TANDEM_FLOAT16) {
      able = draft.registry->backends_with(
          [](const tandem_backend& backend) { return computes_in(backend, TANDEM_FLOAT16); });
    }
    throw error(
        "net '{}': none of its layers with weights computes in {} on device kind '{}': use "
        "--precision float32{}",
        net.name, dtype_name(precision), device_kind,
        able.empty() ? "" : fmt::format(", or devices of kind {}", fmt::join(able, ", ")));
  }
  for (; !chosen.empty(); chosen.pop_front()) {
    for (const int next : neighbors(net, net.layer(chosen.front()))) {
      Layer& layer = net.layer(next);
      if (!can_have[size_t(next)] || layer.dtype == precision) continue;
      layer.dtype = precision;
      chosen.push_back(next);
    }
  }
  for (const Layer& layer : net.layers) {
    for (const int output : layer.outputs) {
      net.tensor(output).dtype = layer.dtype;
    }
  }
}

}  // namespace tandem
