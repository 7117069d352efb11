// Runs one layer as the host would, from plain tensors to plain tensors: parameters checked,
// kernel prepared, passes called in any layout. Every buffer is filled with NaN before a pass and
// has guards around it, so a kernel that reads what it should not, or writes where it must not,
// shows.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/attributes.h"
#include "core/plugin/registry.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/kernel_device.h"
#include "tests/support/plain_tensor.h"

namespace tandem::test {

struct LayerSetup {
  std::string type = {};
  // As a net would write them: {"kernel_size", "3"}; a name may repeat; a filler gives its type.
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
  // A sliced binding: inputs and weights are given whole and cut (see tandem_binding).
  int64_t slice_begin = 0, slice_end = -1;  // output channels; -1: all
  bool whole_outputs = false;
  int64_t input_begin = 0, input_end = -1;  // elements of a row of input 0; -1: all
  PlainTensor output_start = {};            // what output 0 holds before forward
  bool on_a_cpu = false;                    // whatever kernel_device() is
};

// With the kernels of kernel_device().
const Registry& layer_registry();

// Throws Error as the host would for parameters that do not stand the check.
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

class LayerRun {
 public:
  // Throws Error with the plugin's reason if shapes or the kernel refuse.
  explicit LayerRun(LayerSetup setup)
      : setup_(std::move(setup)),
        device_(setup_.on_a_cpu ? cpu_device() : kernel_device()),
        type_(layer_registry().layer_type(setup_.type)),
        kernel_(layer_registry().kernel(setup_.type, device_.kind())),
        attributes_(layer_attributes(type_, setup_.parameters)) {
    for (const int32_t dtype : {setup_.input_dtype, setup_.output_dtype}) {
      const bool is_declared = dtype == TANDEM_FLOAT32 || (kernel_.dtypes >> dtype & 1) != 0;
      if (!is_declared) throw error("{}: its kernel knows no dtype {}", setup_.type, dtype);
    }
    ask_shapes();
    cut();
    describe();
    prepare();
  }
  ~LayerRun() { kernel_.release(handle_); }
  LayerRun(const LayerRun&) = delete;
  LayerRun& operator=(const LayerRun&) = delete;

  [[nodiscard]] const std::vector<Shape>& output_shapes() const { return output_shapes_; }
  [[nodiscard]] const tandem_layer_type& type() const { return type_; }
  [[nodiscard]] const tandem_kernel_report& report() const { return report_; }
  [[nodiscard]] std::string algorithm() const {
    return report_.algorithm == nullptr ? "" : report_.algorithm;
  }

  // The layouts the kernel offers for this binding, best first.
  [[nodiscard]] std::vector<tandem_layout_option> layouts() const {
    std::vector<tandem_layout_option> options(32);
    uint32_t count = 0;
    check(kernel_.layouts(&binding_, options.data(), 32, &count), setup_.type);
    options.resize(count);
    return options;
  }

  // The weights the type declares.
  [[nodiscard]] std::vector<tandem_weight> declared_weights() const {
    const tandem_layer_query query = this->query();
    std::vector<tandem_weight> weights(8);
    uint32_t count = 0;
    check(type_.weights(&query, weights.data(), 8, &count), setup_.type);
    weights.resize(count);
    return weights;
  }

  // With statistics: of these inputs alone, or together with those of other parts of the batch, in
  // this order (each as forward_statistics() gave them).
  std::vector<PlainTensor> forward(const std::vector<std::vector<float>>& others = {}) {
    outputs_ = make(outputs_of_binding_);
    if (!setup_.output_start.values.empty()) {
      write_in_layout(setup_.output_start, outputs_of_binding_[0].layout, outputs_[0].data(),
                      setup_.output_dtype);
    }
    if (in_place()) {
      write_in_layout(setup_.inputs[0], outputs_of_binding_[0].layout, outputs_[0].data(),
                      setup_.output_dtype);
    }
    if (statistics_floats_.forward > 0) {
      run_statistics(kernel_.forward_statistics, {}, statistics_floats_.forward);
      merge(others);
    }
    run(kernel_.forward, {}, {}, {}, 0);
    return read(outputs_, outputs_of_binding_);
  }

  // What the statistics pass writes for these inputs alone; after forward() what it read.
  std::vector<float> forward_statistics() {
    run_statistics(kernel_.forward_statistics, {}, statistics_floats_.forward);
    return statistics();
  }
  [[nodiscard]] std::vector<float> statistics() const {
    if (statistics_ == nullptr) return {};
    return {statistics_->data(), statistics_->data() + statistics_count_};
  }
  // The weights as the last pass left them: states change.
  [[nodiscard]] const std::vector<PlainTensor>& weights_after() const { return weights_after_; }

  // After forward(). A label input's gradient is not wanted and comes back empty.
  // With statistics: as forward(), the others' are added.
  std::vector<PlainTensor> backward_data(const std::vector<PlainTensor>& output_gradients,
                                         const std::vector<std::vector<float>>& others = {}) {
    const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
    if (statistics_floats_.backward > 0) {
      run_statistics(kernel_.backward_statistics, pointers(gradients), statistics_floats_.backward);
      for (const std::vector<float>& other : others) {
        for (size_t i = 0; i < other.size(); ++i) statistics_->data()[i] += other[i];
      }
    }
    const std::vector<GuardedMemory> results = make(inputs_of_binding_);
    std::vector<void*> addresses = pointers(results);
    constexpr uint64_t without_second = TANDEM_SECOND_INPUT_IS_LABEL | TANDEM_SECOND_INPUT_IS_SHAPE;
    if ((type_.traits & without_second) != 0) addresses[1] = nullptr;
    // A host that runs in place gives the gradients one memory, too.
    if (in_place()) addresses[0] = gradients[0].data();
    run(kernel_.backward_data, pointers(gradients), addresses, {}, 0);
    std::vector<PlainTensor> read_back;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const tandem_tensor& tensor = inputs_of_binding_[i];
      read_back.push_back(addresses[i] == nullptr ? PlainTensor{}
                                                  : read_in_layout(tensor.shape, tensor.layout,
                                                                   addresses[i], tensor.dtype));
    }
    return read_back;
  }

  // After forward(): of these output gradients alone.
  std::vector<float> backward_statistics(const std::vector<PlainTensor>& output_gradients) {
    const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
    run_statistics(kernel_.backward_statistics, pointers(gradients), statistics_floats_.backward);
    return statistics();
  }

  // After forward(). With `start`, the gradients are added to it.
  std::vector<PlainTensor> backward_weights(const std::vector<PlainTensor>& output_gradients,
                                            const std::vector<PlainTensor>& start = {}) {
    const std::vector<tandem_tensor> plain = weights_of_binding();
    const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
    const std::vector<GuardedMemory> results = start.empty() ? make(plain) : write(start, plain);
    run(kernel_.backward_weights, pointers(gradients), {}, pointers(results),
        start.empty() ? 0 : TANDEM_ACCUMULATE);
    return read(results, plain);
  }

  LayerSetup& setup() { return setup_; }

 private:
  [[nodiscard]] bool in_place() const { return (setup_.flags & TANDEM_RUNS_IN_PLACE) != 0; }

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
    if ((type_.traits & TANDEM_BATCH_STATISTICS) != 0) {
      check(type_.statistics(&query, &statistics_floats_), setup_.type);
    }
    const std::vector<tandem_weight> declared = declared_weights();
    ASSERT_EQ(declared.size(), setup_.weights.size());
    for (size_t i = 0; i < declared.size(); ++i) {
      ASSERT_TRUE(equal(declared[i].shape, setup_.weights[i].shape)) << declared[i].name;
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

  // A 1x1 image is called NCHW whatever the neighbours, labels are plain.
  static tandem_tensor tensor(const Shape& shape, int32_t layout, int32_t dtype) {
    const bool plain = shape.h == 1 && shape.w == 1;
    return {shape, dtype, plain ? TANDEM_NCHW : layout};
  }

  void describe() {
    for (const Shape& s : input_shapes_) {
      inputs_of_binding_.push_back(tensor(s, setup_.input_layout, setup_.input_dtype));
    }
    if ((type_.traits & TANDEM_SECOND_INPUT_IS_SHAPE) != 0) {
      inputs_of_binding_[1].layout = TANDEM_NCHW;
    }
    for (const Shape& s : output_shapes_) {
      outputs_of_binding_.push_back(tensor(s, setup_.output_layout, setup_.output_dtype));
    }
    for (const PlainTensor& weight : setup_.weights) weight_shapes_.push_back(weight.shape);
    binding_ = {sizeof(tandem_binding),
                setup_.phase,
                setup_.layer_index,
                setup_.flags,
                "tested",
                attributes_.handle(),
                inputs_of_binding_.data(),
                static_cast<uint32_t>(inputs_of_binding_.size()),
                outputs_of_binding_.data(),
                static_cast<uint32_t>(outputs_of_binding_.size()),
                weight_shapes_.data(),
                static_cast<uint32_t>(weight_shapes_.size()),
                setup_.batch_begin,
                setup_.batch_begin + input_shapes_[0].n,
                setup_.slice_begin,
                setup_.slice_end >= 0 ? setup_.slice_end
                                      : (output_shapes_.empty() ? 0 : output_shapes_[0].c),
                setup_.input_begin};
  }

  void prepare() {
    report_ = {sizeof(tandem_kernel_report), 0, 0, 0, nullptr};
    call([&](const tandem_call* call) {
      return kernel_.prepare(&binding_, call, &handle_, &report_);
    });
    saved_ = std::make_unique<GuardedMemory>(report_.saved_bytes);
  }

  void call(const std::function<tandem_status(const tandem_call*)>& function) const {
    check(device_.run(setup_.threads, function), setup_.type);
  }

  [[nodiscard]] std::vector<tandem_tensor> weights_of_binding() const {
    std::vector<tandem_tensor> result;
    for (const Shape& s : weight_shapes_) result.push_back({s, TANDEM_FLOAT32, TANDEM_NCHW});
    return result;
  }

  static std::vector<GuardedMemory> make(const std::vector<tandem_tensor>& tensors) {
    std::vector<GuardedMemory> result;
    for (const tandem_tensor& t : tensors) {
      result.emplace_back(dtype_bytes(t.dtype) * element_count(t.shape));
    }
    return result;
  }
  static std::vector<GuardedMemory> write(const std::vector<PlainTensor>& values,
                                          const std::vector<tandem_tensor>& tensors) {
    std::vector<GuardedMemory> result = make(tensors);
    for (size_t i = 0; i < values.size(); ++i) {
      write_in_layout(values[i], tensors[i].layout, result[i].data(), tensors[i].dtype);
    }
    return result;
  }
  static std::vector<PlainTensor> read(const std::vector<GuardedMemory>& memory,
                                       const std::vector<tandem_tensor>& tensors) {
    std::vector<PlainTensor> result;
    for (size_t i = 0; i < tensors.size(); ++i) {
      result.push_back(
          read_in_layout(tensors[i].shape, tensors[i].layout, memory[i].data(), tensors[i].dtype));
    }
    return result;
  }
  static std::vector<void*> pointers(const std::vector<GuardedMemory>& memory) {
    std::vector<void*> result;
    for (const GuardedMemory& one : memory) result.push_back(one.data());
    return result;
  }

  void run_statistics(tandem_pass_function function, const std::vector<void*>& output_gradients,
                      int64_t floats) {
    statistics_ = std::make_unique<GuardedMemory>(4 * floats);
    statistics_count_ = floats;
    run(function, output_gradients, std::vector<void*>(input_shapes_.size()),
        std::vector<void*>(weight_shapes_.size()), 0);
  }
  void merge(const std::vector<std::vector<float>>& others) {
    for (const std::vector<float>& other : others) {
      if (kernel_.merge_forward_statistics == nullptr) {
        for (size_t i = 0; i < other.size(); ++i) statistics_->data()[i] += other[i];
        continue;
      }
      GuardedMemory memory(static_cast<int64_t>(other.size()) * 4);
      std::copy(other.begin(), other.end(), memory.data());
      OnDevice on(device_);
      const auto* source = static_cast<const float*>(on.at(memory.data()));
      auto* target = static_cast<float*>(on.at(statistics_->data()));
      call([&](const tandem_call* call) {
        return kernel_.merge_forward_statistics(handle_, call, target, &source, 1);
      });
    }
  }

  // What a backward pass did not ask for it does not get.
  void run(tandem_pass_function function, const std::vector<void*>& output_gradients,
           const std::vector<void*>& input_gradients, const std::vector<void*>& weight_gradients,
           uint32_t flags) {
    const bool forward = output_gradients.empty();
    const bool reads_inputs = forward || (type_.traits & TANDEM_BACKWARD_READS_INPUTS) != 0;
    const bool reads_outputs = forward || (type_.traits & TANDEM_BACKWARD_READS_OUTPUTS) != 0;
    const std::vector<GuardedMemory> inputs =
        reads_inputs ? write(setup_.inputs, inputs_of_binding_) : make(inputs_of_binding_);
    const std::vector<GuardedMemory> hidden = make(outputs_of_binding_);
    const std::vector<GuardedMemory> weights = write(setup_.weights, weights_of_binding());
    const GuardedMemory scratch(report_.scratch_bytes);
    std::vector<void*> input_addresses = pointers(inputs);
    const std::vector<void*> output_addresses = pointers(reads_outputs ? outputs_ : hidden);
    const std::vector<void*> weight_addresses = pointers(weights);
    if (in_place()) input_addresses[0] = output_addresses[0];
    call_pass(function, flags, input_addresses, output_addresses, weight_addresses, input_gradients,
              output_gradients, weight_gradients, scratch);
    weights_after_ = read(weights, weights_of_binding());
  }

  // With everything where the device has it, for the time of the call.
  void call_pass(tandem_pass_function function, uint32_t flags, const std::vector<void*>& inputs,
                 const std::vector<void*>& outputs, const std::vector<void*>& weights,
                 const std::vector<void*>& input_gradients,
                 const std::vector<void*>& output_gradients,
                 const std::vector<void*>& weight_gradients, const GuardedMemory& scratch) {
    const GuardedMemory step(&setup_.step, sizeof setup_.step);
    const GuardedMemory normaliser(&setup_.normaliser, sizeof setup_.normaliser);
    const std::vector<float>& labels = setup_.row_labels;
    const GuardedMemory row_labels(labels.data(), static_cast<int64_t>(4 * labels.size()));
    OnDevice on(device_);
    const std::vector<void*> x = on.at(inputs), y = on.at(outputs), w = on.at(weights),
                             dx = on.at(input_gradients), dy = on.at(output_gradients),
                             dw = on.at(weight_gradients);
    const void* statistics = statistics_ == nullptr ? nullptr : statistics_->data();
    const tandem_pass pass{
        sizeof(tandem_pass),
        flags,
        x.data(),
        y.data(),
        w.data(),
        dx.data(),
        const_cast<const void* const*>(dy.data()),
        dw.data(),
        on.at(saved_->data()),
        on.at(scratch.data()),
        static_cast<const tandem_step*>(on.at(step.data())),
        static_cast<const float*>(on.at(normaliser.data())),
        static_cast<float*>(on.at(statistics)),
        labels.empty() ? nullptr : static_cast<const float*>(on.at(row_labels.data()))};
    call([&](const tandem_call* call) { return function(handle_, call, &pass); });
  }

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
  std::vector<GuardedMemory> outputs_;
  std::unique_ptr<GuardedMemory> saved_;
  tandem_layer_statistics statistics_floats_{};
  std::unique_ptr<GuardedMemory> statistics_;
  int64_t statistics_count_ = 0;
  std::vector<PlainTensor> weights_after_;
};

// The layouts a kernel offers for a setup, each as the setup in that layout.
inline std::vector<LayerSetup> in_every_layout(const LayerSetup& setup) {
  std::vector<LayerSetup> result;
  for (const tandem_layout_option& option : LayerRun(setup).layouts()) {
    result.push_back(setup);
    result.back().input_layout = option.input;
    result.back().output_layout = option.output;
  }
  return result;
}

inline std::string layout_text(const LayerSetup& setup) {
  return layout_name(setup.input_layout) + " -> " + layout_name(setup.output_layout);
}

// Why a layer is refused; "" if it is not.
inline std::string refusal_of(const LayerSetup& setup) {
  try {
    LayerRun run(setup);
  } catch (const Error& refusal) {
    return refusal.what();
  }
  return "";
}

}  // namespace tandem::test
