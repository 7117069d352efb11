// One layer, bound as the host would bind it: parameters checked, shapes computed, slices cut,
// kernel prepared, in any layout and dtype. layer_test.h runs its passes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/guarded_memory.h"
#include "core/check/kernel_device.h"
#include "core/check/tensor.h"
#include "core/plugin/attributes.h"
#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"
#include "core/plugin/registry.h"

namespace tandem::checker {

struct LayerSetup {
  std::string type = {};
  // As in a net file: {"kernel_size", "3"}. A name may be repeated; a filler is given by its type.
  std::vector<std::pair<std::string, std::string>> parameters = {};
  std::vector<PlainTensor> inputs = {};
  std::vector<PlainTensor> weights = {};
  uint32_t output_count = 1;
  int32_t phase = TANDEM_TRAIN;
  int32_t input_layout = TANDEM_NCHW, output_layout = TANDEM_NCHW;
  int32_t input_dtype = TANDEM_FLOAT32, output_dtype = TANDEM_FLOAT32;
  uint32_t flags = TANDEM_WANTS_BACKWARD_DATA | TANDEM_WANTS_BACKWARD_WEIGHTS;
  uint32_t layer_index = 3;
  int64_t batch_begin = 0;
  tandem_step step{42, 7, 0.01F, 1, 0, 0};
  float normaliser = 1;
  std::vector<float> row_labels = {};  // empty: all rows hold samples
  int32_t threads = 2;
  // A sliced binding: inputs and weights are given whole and are cut here (see tandem_binding).
  int64_t slice_begin = 0, slice_end = -1;  // output channels; -1: all
  bool whole_outputs = false;
  int64_t input_begin = 0, input_end = -1;  // elements of a row of input 0; -1: all
  int32_t activation = TANDEM_ACTIVATION_NONE, activation_before = TANDEM_ACTIVATION_NONE;
  PlainTensor addend = {};        // of a fused sum; empty: none
  std::string algorithm = {};     // of an earlier run; "": none
  PlainTensor output_start = {};  // the contents of output 0 before forward
  bool on_a_cpu = false;          // even if the kernels under test run on another device
  std::shared_ptr<const Attributes> attributes = {};  // instead of `parameters`
  unsigned char fill = GuardedMemory::nan;            // what memory holds before it is written
};

// Throws Error for invalid parameters, as the host does.
inline Attributes layer_attributes(
    const tandem_layer_type& type,
    const std::vector<std::pair<std::string, std::string>>& parameters) {
  Attributes result;
  size_t used = 0;
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    const tandem_parameter& parameter = *type.parameters[i];
    std::vector<std::string> raw;
    for (const auto& [name, text] : parameters) {
      if (name == parameter.name) raw.push_back(text);
    }
    used += raw.size();
    if (raw.empty()) {
      result.set(parameter.name, default_attribute(parameter, type.name));
    } else if (parameter.type == TANDEM_PARAMETER_FILLER) {
      result.set(parameter.name,
                 {.value = Filler{.type = raw.front()}, .is_set = true, .location = {}});
    } else {
      result.set(parameter.name, parse_attribute(parameter, raw, type.name, {}));
    }
  }
  if (used != parameters.size()) throw error("{}: a parameter was not declared", type.name);
  return result;
}

class LayerBinding {
 public:
  // Throws Error with the plugin's reason if shapes or the kernel refuse. `registry` and `device`
  // outlive it.
  LayerBinding(LayerSetup setup, const Registry& registry, KernelDevice& device)
      : setup_(std::move(setup)),
        device_(device),
        type_(registry.layer_type(setup_.type)),
        kernel_(registry.kernel(setup_.type, device_.kind())),
        attributes_(setup_.attributes != nullptr ? *setup_.attributes
                                                 : layer_attributes(type_, setup_.parameters)) {
    for (const int32_t dtype : {setup_.input_dtype, setup_.output_dtype}) {
      const bool is_declared = dtype == TANDEM_FLOAT32 || (kernel_.dtypes >> dtype & 1) != 0;
      if (!is_declared) throw error("{}: its kernel knows no dtype {}", setup_.type, dtype);
    }
    ask_shapes();
    cut();
    describe();
    prepare();
  }
  ~LayerBinding() {
    if (handle_ != nullptr) kernel_.release(handle_);
  }
  LayerBinding(const LayerBinding&) = delete;
  LayerBinding& operator=(const LayerBinding&) = delete;

  [[nodiscard]] const std::vector<Shape>& output_shapes() const { return output_shapes_; }
  [[nodiscard]] const tandem_layer_type& type() const { return type_; }
  [[nodiscard]] const tandem_kernel& kernel() const { return kernel_; }
  [[nodiscard]] const tandem_layer_statistics& statistics_floats() const {
    return statistics_floats_;
  }
  [[nodiscard]] const tandem_kernel_report& report() const { return report_; }
  [[nodiscard]] std::string algorithm() const {
    return report_.algorithm == nullptr ? "" : report_.algorithm;
  }

  // The layouts that the kernel offers for this binding, best first.
  [[nodiscard]] std::vector<tandem_layout_option> layouts() const {
    std::vector<tandem_layout_option> options;
    check(ask_layouts(kernel_, binding_, options), setup_.type);
    return options;
  }

  // The weights that the type declares.
  [[nodiscard]] std::vector<tandem_weight> declared_weights() const {
    const tandem_layer_query query = this->query();
    std::vector<tandem_weight> weights;
    check(ask_weights(type_, query, weights), setup_.type);
    return weights;
  }

  LayerSetup& setup() { return setup_; }

 protected:
  [[nodiscard]] bool in_place() const { return (setup_.flags & TANDEM_RUNS_IN_PLACE) != 0; }

  [[nodiscard]] std::vector<tandem_tensor> weights_of_binding() const {
    std::vector<tandem_tensor> result;
    for (const Shape& s : weight_shapes_) result.push_back({s, TANDEM_FLOAT32, TANDEM_NCHW});
    return result;
  }

  void call(const std::function<tandem_status(const tandem_call*)>& function) const {
    check(device_.run(setup_.threads, function), setup_.type);
  }

 private:
  [[nodiscard]] tandem_layer_query query() const {
    return {sizeof(tandem_layer_query),
            setup_.phase,
            attributes_.handle(),
            input_shapes_.data(),
            static_cast<uint32_t>(input_shapes_.size()),
            setup_.output_count};
  }

  void ask_shapes() {
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

  void cut() {
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

  // Labels are plain float32, whatever the layer computes in.
  [[nodiscard]] tandem_tensor input_tensor(size_t i) const {
    const Shape& shape = input_shapes_[i];
    if (is_label(type_, i)) return {shape, TANDEM_FLOAT32, TANDEM_NCHW};
    const bool is_shape_only = input_role(type_, i) == TANDEM_INPUT_SHAPE;
    return tensor(shape, is_shape_only ? static_cast<int32_t>(TANDEM_NCHW) : setup_.input_layout,
                  setup_.input_dtype);
  }

  // A 1x1 image is called NCHW whatever its neighbours are.
  static tandem_tensor tensor(const Shape& shape, int32_t layout, int32_t dtype) {
    const bool plain = shape.h == 1 && shape.w == 1;
    return {shape, dtype, plain ? TANDEM_NCHW : layout};
  }

  void describe() {
    for (size_t i = 0; i < input_shapes_.size(); ++i) {
      inputs_of_binding_.push_back(input_tensor(i));
    }
    for (const Shape& s : output_shapes_) {
      outputs_of_binding_.push_back(tensor(s, setup_.output_layout, setup_.output_dtype));
    }
    for (const PlainTensor& weight : setup_.weights) weight_shapes_.push_back(weight.shape);
    binding_ = {sizeof(tandem_binding),
                setup_.phase,
                setup_.layer_index,
                setup_.flags | (setup_.addend.values.empty() ? 0U : uint32_t{TANDEM_FUSED_SUM}),
                "tested",
                attributes_.handle(),
                inputs_of_binding_.data(),
                static_cast<uint32_t>(inputs_of_binding_.size()),
                sizeof(tandem_tensor),
                outputs_of_binding_.data(),
                static_cast<uint32_t>(outputs_of_binding_.size()),
                weight_shapes_.data(),
                static_cast<uint32_t>(weight_shapes_.size()),
                setup_.batch_begin,
                setup_.batch_begin + input_shapes_[0].n,
                setup_.slice_begin,
                setup_.slice_end >= 0 ? setup_.slice_end
                                      : (output_shapes_.empty() ? 0 : output_shapes_[0].c),
                setup_.input_begin,
                setup_.algorithm.empty() ? nullptr : setup_.algorithm.c_str(),
                setup_.activation,
                setup_.activation_before};
  }

  void prepare() {
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

 protected:
  LayerSetup setup_;
  KernelDevice& device_;
  const tandem_layer_type& type_;
  const tandem_kernel& kernel_;
  Attributes attributes_;
  std::vector<Shape> input_shapes_, output_shapes_, weight_shapes_;
  std::vector<tandem_tensor> inputs_of_binding_, outputs_of_binding_;
  tandem_binding binding_{};
  tandem_kernel_report report_{};
  void* handle_ = nullptr;
  std::unique_ptr<GuardedMemory> saved_;
  tandem_layer_statistics statistics_floats_{};
};

}  // namespace tandem::checker
