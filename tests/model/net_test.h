// Nets of the fake layer types (tests/model/plugins), written as prototxt in the test.
#pragma once

#include <string>
#include <vector>

#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "tests/support/folders.h"
#include "tests/support/message_of.h"

namespace tandem::test {

[[nodiscard]] inline const Registry& fake_registry() {
  static const Registry registry = [] {
    Registry loaded;
    loaded.load(test::test_plugin_folder().string() + "/test_model_layers.so");
    return loaded;
  }();
  return registry;
}

[[nodiscard]] inline NetDefinition parse_definition(const std::string& text) {
  return parse_net(parse_text_format(text, "net.prototxt"), "net.prototxt");
}

// Options of a small training net: batch 2, 3x8x8, every tensor float32 and NCHW.
[[nodiscard]] inline NetOptions small_options(int32_t phase = TANDEM_TRAIN) {
  NetOptions options;
  options.phase = phase;
  options.batch = 2;
  options.data = {1, 3, 8, 8};
  options.device_kind = "";
  return options;
}

[[nodiscard]] inline Net build(const std::string& text, const NetOptions& options) {
  return build_net(parse_definition(text), fake_registry(), options);
}
[[nodiscard]] inline Net build(const std::string& text, int32_t phase = TANDEM_TRAIN) {
  return build(text, small_options(phase));
}
[[nodiscard]] inline std::string build_failure(const std::string& text,
                                               int32_t phase = TANDEM_TRAIN) {
  return message_of([&] { (void)build(text, phase); });
}

// Names of the Reorder layers, in the order of the net.
[[nodiscard]] inline std::vector<std::string> reorders(const Net& net) {
  std::vector<std::string> names;
  for (const Layer& layer : net.layers) {
    if (std::string(layer.type->name) == "Reorder") names.push_back(layer.name);
  }
  return names;
}

inline const std::string data_layer =
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n";
inline const std::string loss_layer =
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n";

// One layer of prototxt; `more` follows bottom and top.
[[nodiscard]] inline std::string layer(const std::string& name, const std::string& type,
                                       const std::string& bottom, const std::string& top,
                                       const std::string& more = "") {
  return fmt::format("layer {{ name: '{}' type: '{}' bottom: '{}' top: '{}' {} }}\n", name, type,
                     bottom, top, more);
}
[[nodiscard]] inline std::string convolution(const std::string& name, const std::string& bottom,
                                             const std::string& top, int outputs,
                                             const std::string& more = "") {
  return layer(name, "Convolution", bottom, top,
               fmt::format("convolution_param {{ num_output: {} kernel_size: 3 pad: 1 }} {}",
                           outputs, more));
}
[[nodiscard]] inline std::string inner_product_layer(const std::string& name,
                                                     const std::string& bottom,
                                                     const std::string& top,
                                                     const std::string& more = "") {
  return layer(name, "InnerProduct", bottom, top,
               fmt::format("inner_product_param {{ num_output: 4 }} {}", more));
}

[[nodiscard]] inline const Layer& layer_of(const Net& net, const std::string& name) {
  return net.layers.at(static_cast<size_t>(net.find_layer(name)));
}
[[nodiscard]] inline const Tensor& output_of(const Net& net, const std::string& name) {
  return net.tensors.at(static_cast<size_t>(layer_of(net, name).outputs.at(0)));
}
[[nodiscard]] inline std::vector<std::string> layer_names(const Net& net) {
  std::vector<std::string> names;
  for (const Layer& layer : net.layers) names.push_back(layer.name);
  return names;
}
[[nodiscard]] inline std::vector<std::string> weight_names(const Net& net) {
  std::vector<std::string> names;
  for (const WeightArray& weight : net.weights) names.push_back(weight.name);
  return names;
}

}  // namespace tandem::test
