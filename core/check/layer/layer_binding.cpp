#include "core/check/layer/layer_binding.h"

#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

namespace {

// A 1x1 image is called NCHW whatever its neighbors are.
tandem_tensor tensor_of(const Shape& shape, int32_t layout, int32_t dtype) {
  const bool plain = shape.h == 1 && shape.w == 1;
  return {shape, dtype, plain ? TANDEM_NCHW : layout};
}

}  // namespace

Attributes attributes_of(const tandem_layer_type& type, const LayerSetup& setup) {
  if (setup.attributes != nullptr) return *setup.attributes;
  Attributes result;
  size_t used = 0;
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    const tandem_parameter& parameter = *type.parameters[i];
    std::vector<std::string> raw;
    for (const auto& [name, text] : setup.parameters) {
      if (name == parameter.name) raw.push_back(text);
    }
    used += raw.size();
    if (raw.empty() && parameter.required != 0) {
      throw error("{}: {} is required: {}", type.name, parameter.name, parameter.help);
    }
    if (raw.empty()) {
      result.set(parameter.name, default_attribute(parameter, type.name));
    } else if (parameter.type == TANDEM_PARAMETER_FILLER) {
      result.set(parameter.name,
                 {.value = Filler{.type = raw.front()}, .is_set = true, .location = {}});
    } else {
      result.set(parameter.name, parse_attribute(parameter, raw, type.name, {}));
    }
  }
  if (used != setup.parameters.size()) {
    throw error("{}: a parameter was not declared", type.name);
  }
  return result;
}

tandem_layer_query query_of(const LayerSetup& setup, const Attributes& attributes,
                            const std::vector<Shape>& inputs) {
  return {sizeof(tandem_layer_query), setup.phase,       attributes.handle(), inputs.data(),
          uint32_t(inputs.size()),    setup.output_count};
}

LayerBinding::LayerBinding(LayerSetup setup, const Registry& registry, KernelDevice& device)
    : setup_(std::move(setup)),
      device_(device),
      type_(registry.layer_type(setup_.type)),
      kernel_(registry.kernel(setup_.type, device_.kind())),
      attributes_(attributes_of(type_, setup_)) {
  for (const int32_t dtype : {setup_.input_dtype, setup_.output_dtype}) {
    const bool is_declared = dtype == TANDEM_FLOAT32 || (kernel_.dtypes >> dtype & 1) != 0;
    if (!is_declared) throw error("{}: its kernel knows no dtype {}", setup_.type, dtype);
  }
  ask_shapes();
  cut();
  describe();
  prepare();
}

LayerBinding::~LayerBinding() {
  if (handle_ != nullptr) kernel_.release(handle_);
}

std::vector<tandem_layout_option> LayerBinding::layouts() const {
  std::vector<tandem_layout_option> options;
  check(ask_layouts(kernel_, binding_, options), setup_.type);
  return options;
}

std::vector<tandem_weight> LayerBinding::declared_weights() const {
  std::vector<tandem_weight> weights;
  check(ask_weights(type_, query(), weights), setup_.type);
  return weights;
}

std::vector<tandem_tensor> LayerBinding::weights_of_binding() const {
  std::vector<tandem_tensor> result;
  for (const Shape& s : weight_shapes_) result.push_back({s, TANDEM_FLOAT32, TANDEM_NCHW});
  return result;
}

void LayerBinding::call(const KernelDevice::Work& work) const {
  check(device_.run(setup_.threads, work), setup_.type);
}

void LayerBinding::ask_shapes() {
  for (const PlainTensor& input : setup_.inputs) input_shapes_.push_back(input.shape);
  output_shapes_.resize(setup_.output_count);
  const tandem_layer_query query = this->query();
  check(type_.shapes(&query, output_shapes_.data()), setup_.type);
  statistics_floats_.struct_size = sizeof statistics_floats_;
  if ((type_.traits & TANDEM_BATCH_STATISTICS) != 0 && type_.statistics != nullptr) {
    check(type_.statistics(&query, &statistics_floats_), setup_.type);
  }
  const std::vector<tandem_weight> declared = declared_weights();
  if (declared.size() != setup_.weights.size()) {
    throw error("{}: it declares {} weights, but {} are given", setup_.type, declared.size(),
                setup_.weights.size());
  }
  for (size_t i = 0; i < declared.size(); ++i) {
    if (equal(declared[i].shape, setup_.weights[i].shape)) continue;
    throw error("{}: its weight '{}' has another shape than the given one", setup_.type,
                declared[i].name);
  }
}

void LayerBinding::cut() {
  const int64_t begin = setup_.slice_begin, end = setup_.slice_end;
  if (end >= 0) {
    if (!setup_.whole_outputs) output_shapes_[0].c = end - begin;
    for (PlainTensor& weight : setup_.weights) weight = first_axis_of(weight, begin, end);
    if (setup_.weights.empty()) setup_.inputs[0] = channels_of(setup_.inputs[0], begin, end);
  }
  if (setup_.input_end >= 0) {
    PlainTensor& input = setup_.inputs[0];
    input.shape = {input.shape.n, input.shape.c * input.shape.h * input.shape.w, 1, 1};
    input = channels_of(input, setup_.input_begin, setup_.input_end);
  }
  input_shapes_[0] = setup_.inputs[0].shape;
}

void LayerBinding::describe() {
  for (size_t i = 0; i < input_shapes_.size(); ++i) {
    // Labels are plain float32, whatever the layer computes in.
    const bool label = is_label(type_, i), is_plain = input_role(type_, i) == TANDEM_INPUT_SHAPE;
    inputs_of_binding_.push_back(
        tensor_of(input_shapes_[i], label || is_plain ? int32_t{TANDEM_NCHW} : setup_.input_layout,
                  label ? int32_t{TANDEM_FLOAT32} : setup_.input_dtype));
  }
  for (const Shape& s : output_shapes_) {
    outputs_of_binding_.push_back(tensor_of(s, setup_.output_layout, setup_.output_dtype));
  }
  for (const PlainTensor& weight : setup_.weights) weight_shapes_.push_back(weight.shape);
  binding_ = {
      sizeof(tandem_binding),
      setup_.phase,
      setup_.layer_index,
      setup_.flags | (setup_.addend.values.empty() ? 0U : uint32_t{TANDEM_FUSED_SUM}),
      "tested",
      attributes_.handle(),
      inputs_of_binding_.data(),
      uint32_t(inputs_of_binding_.size()),
      sizeof(tandem_tensor),
      outputs_of_binding_.data(),
      uint32_t(outputs_of_binding_.size()),
      weight_shapes_.data(),
      uint32_t(weight_shapes_.size()),
      setup_.batch_begin,
      setup_.batch_size > 0 ? setup_.batch_size : setup_.batch_begin + input_shapes_[0].n,
      setup_.slice_begin,
      setup_.slice_end >= 0 ? setup_.slice_end : (output_shapes_.empty() ? 0 : output_shapes_[0].c),
      setup_.input_begin,
      setup_.algorithm.empty() ? nullptr : setup_.algorithm.c_str(),
      setup_.activation,
      setup_.activation_before};
}

void LayerBinding::prepare() {
  report_ = {};
  report_.struct_size = sizeof report_;
  call([&](const tandem_call* call) {
    return kernel_.prepare(&binding_, call, &handle_, &report_);
  });
  for (const int64_t bytes : {report_.saved_bytes, report_.scratch_bytes}) {
    if (bytes < 0) throw error("{}: its kernel asks for {} bytes of memory", setup_.type, bytes);
  }
  saved_ = std::make_unique<GuardedMemory>(report_.saved_bytes, setup_.fill);
}

}  // namespace tandem::checker
