#include <algorithm>

#include "core/model/fields.h"
#include "core/model/layer_calls.h"
#include "core/model/layouts.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

constexpr uint32_t most_options = 64;

bool is_label(const Net& net, const Layer& layer, size_t input) {
  return layer.inputs[input] == net.label ||
         (input == 1 && layer.has(TANDEM_SECOND_INPUT_IS_LABEL));
}

bool is_shape_only(const Layer& layer, size_t input) {
  return input == 1 && layer.has(TANDEM_SECOND_INPUT_IS_SHAPE);
}

bool can_have(const Shape& shape, int32_t layout) {
  if (shape.h == 1 && shape.w == 1) return true;
  switch (layout) {
    case TANDEM_NCHW:
    case TANDEM_NHWC:
      return true;
    case TANDEM_NCHW8C:
      return shape.c % 8 == 0;
    case TANDEM_NCHW16C:
      return shape.c % 16 == 0;
    default:
      return false;  // of a newer plugin
  }
}

bool can_have(const Net& net, const Layer& layer, const tandem_layout_option& option) {
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    const Shape& shape = net.tensors[static_cast<size_t>(layer.inputs[i])].shape;
    if (is_label(net, layer, i) || is_shape_only(layer, i)) continue;
    if (!can_have(shape, option.input)) return false;
  }
  return std::all_of(layer.outputs.begin(), layer.outputs.end(), [&](int tensor) {
    return can_have(net.tensors[static_cast<size_t>(tensor)].shape, option.output);
  });
}

// A layer's whole binding, before anything is known of layouts.
class LayoutQuestion {
 public:
  LayoutQuestion(const Net& net, const Layer& layer) {
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      const Tensor& tensor = net.tensors[static_cast<size_t>(layer.inputs[i])];
      inputs_.push_back({tensor.shape, wanted_dtype(net, layer, i, tensor.dtype), TANDEM_NCHW});
    }
    for (const int output : layer.outputs) {
      const Tensor& tensor = net.tensors[static_cast<size_t>(output)];
      outputs_.push_back({tensor.shape, tensor.dtype, TANDEM_NCHW});
    }
    for (const int weight : layer.weights) {
      weights_.push_back(net.weights[static_cast<size_t>(weight)].shape);
    }
    binding_.struct_size = sizeof(binding_);
    binding_.phase = net.phase;
    binding_.layer_index = layer.random_index;
    if (layer.wants_backward_data) binding_.flags |= TANDEM_WANTS_BACKWARD_DATA;
    if (layer.wants_backward_weights) binding_.flags |= TANDEM_WANTS_BACKWARD_WEIGHTS;
    if (layer.allows_tf32) binding_.flags |= TANDEM_ALLOWS_TF32;
    binding_.layer_name = layer.name.c_str();
    binding_.attributes = layer.attributes->handle();
    binding_.inputs = inputs_.data();
    binding_.input_count = static_cast<uint32_t>(inputs_.size());
    binding_.outputs = outputs_.data();
    binding_.output_count = static_cast<uint32_t>(outputs_.size());
    binding_.weights = weights_.data();
    binding_.weight_count = static_cast<uint32_t>(weights_.size());
    binding_.batch_size = net.batch;
    binding_.slice_end = outputs_.empty() ? 0 : outputs_[0].shape.c;
  }
  LayoutQuestion(const LayoutQuestion&) = delete;
  LayoutQuestion& operator=(const LayoutQuestion&) = delete;

  [[nodiscard]] const tandem_binding& binding() const { return binding_; }

 private:
  std::vector<tandem_tensor> inputs_, outputs_;
  std::vector<Shape> weights_;
  tandem_binding binding_{};
};

std::vector<tandem_layout_option> ask(const Net& net, const Layer& layer,
                                      const tandem_kernel& kernel) {
  if (kernel.layouts == nullptr) return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
  const LayoutQuestion question(net, layer);
  std::vector<tandem_layout_option> options(most_options);
  uint32_t count = 0;
  const tandem_status status =
      kernel.layouts(&question.binding(), options.data(), most_options, &count);
  if (status != TANDEM_OK) throw layer_error(layer, take_reason());
  options.resize(std::min(count, most_options));
  std::erase_if(options,
                [&](const tandem_layout_option& option) { return !can_have(net, layer, option); });
  if (options.empty()) {
    throw layer_error(layer, fmt::format("its kernel on device kind '{}' offers no layout that its "
                                         "tensors can have",
                                         kernel.device_kind));
  }
  return options;
}

}  // namespace

int32_t effective_layout(const Shape& shape, int32_t layout) {
  return shape.h == 1 && shape.w == 1 ? static_cast<int32_t>(TANDEM_NCHW) : layout;
}

int32_t wanted_layout(const Net& net, const Layer& layer, size_t input,
                      const tandem_layout_option& option, int32_t made) {
  if (is_shape_only(layer, input)) return made;
  if (is_label(net, layer, input)) return TANDEM_NCHW;
  const Shape& shape = net.tensors[static_cast<size_t>(layer.inputs[input])].shape;
  return effective_layout(shape, option.input);
}

int32_t made_layout(const Net& net, int tensor, const LayoutChoice& choice) {
  const Tensor& made = net.tensors[static_cast<size_t>(tensor)];
  if (made.producer < 0) return TANDEM_NCHW;
  return effective_layout(made.shape, choice[static_cast<size_t>(made.producer)].output);
}

std::vector<std::vector<tandem_layout_option>> layout_options(const Net& net,
                                                              const Registry& registry,
                                                              const std::string& device_kind) {
  std::vector<std::vector<tandem_layout_option>> options;
  for (const Layer& layer : net.layers) {
    options.push_back(ask(net, layer, kernel_of(layer, registry, device_kind)));
  }
  return options;
}

}  // namespace tandem
