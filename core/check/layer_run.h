// Runs one layer as the host would, from plain tensors to plain tensors. Every buffer is filled
// with NaN before a pass and has guards around it, so that reads of unwritten memory and writes out
// of bounds are detected. After each pass, memory that the kernel must not write is compared.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/check/layer_binding.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

// Memory that a kernel wrote, but must not.
class Violation : public Error {
 public:
  using Error::Error;
};

// Each pass throws Violation.
class LayerRun : public LayerBinding {
 public:
  using LayerBinding::LayerBinding;
  // Passes do not look for what they must not write.
  void tolerate_violations() { tolerates_ = true; }
  // Backward passes get inputs and outputs even if the traits do not name them.
  void show_everything() { shows_everything_ = true; }

  // The inputs whose gradient is not wanted; the outputs whose gradient does not exist (zeros).
  void leave_out(std::vector<bool> input_gradients, std::vector<bool> output_gradients) {
    unwanted_ = std::move(input_gradients);
    absent_ = std::move(output_gradients);
  }

  // With statistics: of these inputs alone, or together with those of other parts of the batch, in
  // this order, each as forward_statistics() returned them.
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

  // The result of the statistics pass for these inputs alone; after forward(), the statistics that
  // it read.
  std::vector<float> forward_statistics() {
    run_statistics(kernel_.forward_statistics, {}, statistics_floats_.forward);
    return statistics();
  }
  [[nodiscard]] std::vector<float> statistics() const {
    if (statistics_ == nullptr) return {};
    return {statistics_->data(), statistics_->data() + statistics_count_};
  }
  // The weights after the last pass: states change.
  [[nodiscard]] const std::vector<PlainTensor>& weights_after() const { return weights_after_; }

  // After forward(). A label input's gradient is not wanted and is returned empty. With statistics:
  // as in forward(), those of the others are added.
  std::vector<PlainTensor> backward_data(const std::vector<PlainTensor>& output_gradients,
                                         const std::vector<std::vector<float>>& others = {}) {
    const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
    run_backward_statistics(gradients, others);
    const std::vector<GuardedMemory> results = make(inputs_of_binding_);
    std::vector<void*> addresses = pointers(results);
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (is_label(type_, i) || input_role(type_, i) == TANDEM_INPUT_SHAPE) addresses[i] = nullptr;
    }
    // A host that runs in place also gives the gradients the same memory.
    if (in_place()) addresses[0] = gradients[0].data();
    for (size_t i = 0; i < unwanted_.size(); ++i) {
      if (unwanted_[i]) addresses[i] = nullptr;
    }
    run(kernel_.backward_data, output_pointers(gradients), addresses, {}, 0);
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

  // After forward(). With `start`, the gradients are added to it. With statistics: as in
  // backward_data().
  std::vector<PlainTensor> backward_weights(const std::vector<PlainTensor>& output_gradients,
                                            const std::vector<PlainTensor>& start = {},
                                            const std::vector<std::vector<float>>& others = {}) {
    const std::vector<tandem_tensor> plain = weights_of_binding();
    const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
    run_backward_statistics(gradients, others);
    const std::vector<GuardedMemory> results = start.empty() ? make(plain) : write(start, plain);
    run(kernel_.backward_weights, output_pointers(gradients), {}, pointers(results),
        start.empty() ? 0 : TANDEM_ACCUMULATE);
    return read(results, plain);
  }

 private:
  [[nodiscard]] std::vector<GuardedMemory> make(const std::vector<tandem_tensor>& tensors) const {
    std::vector<GuardedMemory> result;
    for (const tandem_tensor& t : tensors) {
      result.emplace_back(dtype_bytes(t.dtype) * element_count(t.shape), setup_.fill);
    }
    return result;
  }
  [[nodiscard]] std::vector<GuardedMemory> write(const std::vector<PlainTensor>& values,
                                                 const std::vector<tandem_tensor>& tensors) const {
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
  [[nodiscard]] std::vector<void*> output_pointers(const std::vector<GuardedMemory>& memory) const {
    std::vector<void*> result = pointers(memory);
    for (size_t i = 0; i < absent_.size(); ++i) {
      if (absent_[i]) result[i] = nullptr;
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
    statistics_ = std::make_unique<GuardedMemory>(4 * floats, setup_.fill);
    statistics_count_ = floats;
    if (function == nullptr) throw error("{}: its kernel has no statistics pass", setup_.type);
    run(function, output_gradients, std::vector<void*>(input_shapes_.size()),
        std::vector<void*>(weight_shapes_.size()), 0, output_gradients.empty());
  }
  void run_backward_statistics(const std::vector<GuardedMemory>& output_gradients,
                               const std::vector<std::vector<float>>& others) {
    if (statistics_floats_.backward == 0) return;
    run_statistics(kernel_.backward_statistics, pointers(output_gradients),
                   statistics_floats_.backward);
    for (const std::vector<float>& other : others) {
      for (size_t i = 0; i < other.size(); ++i) statistics_->data()[i] += other[i];
    }
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

  // A backward pass gets only the tensors that its traits name.
  void run(tandem_pass_function function, const std::vector<void*>& output_gradients,
           const std::vector<void*>& input_gradients, const std::vector<void*>& weight_gradients,
           uint32_t flags) {
    if (function == nullptr) throw error("{}: its kernel has no such pass", setup_.type);
    const bool forward =
        output_gradients.empty() && input_gradients.empty() && weight_gradients.empty();
    run(function, output_gradients, input_gradients, weight_gradients, flags, forward);
  }
  void run(tandem_pass_function function, const std::vector<void*>& output_gradients,
           const std::vector<void*>& input_gradients, const std::vector<void*>& weight_gradients,
           uint32_t flags, bool forward) {
    const bool reads_inputs = forward || shows_everything_ ||
                              (type_.traits & TANDEM_BACKWARD_READS_INPUTS) != 0 ||
                              setup_.activation_before != TANDEM_ACTIVATION_NONE;
    const bool reads_outputs =
        forward || shows_everything_ || (type_.traits & TANDEM_BACKWARD_READS_OUTPUTS) != 0;
    const std::vector<GuardedMemory> inputs =
        reads_inputs ? write(setup_.inputs, inputs_of_binding_) : make(inputs_of_binding_);
    const std::vector<GuardedMemory> hidden = make(outputs_of_binding_);
    const std::vector<GuardedMemory> weights = write(setup_.weights, weights_of_binding());
    const GuardedMemory scratch(report_.scratch_bytes, setup_.fill);
    std::vector<void*> input_addresses = pointers(inputs);
    const std::vector<void*> output_addresses = pointers(reads_outputs ? outputs_ : hidden);
    const std::vector<void*> weight_addresses = pointers(weights);
    if (in_place()) input_addresses[0] = output_addresses[0];
    std::vector<GuardedMemory> addend;
    if (function == kernel_.forward && !setup_.addend.values.empty()) {
      addend = write({setup_.addend}, {outputs_of_binding_[0]});
    }
    ReadOnly unwritten(tolerates_);
    for (const GuardedMemory& one : addend) unwritten.add("the addend", one.data());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i > 0 || !in_place()) unwritten.add(fmt::format("input {}", i), input_addresses[i]);
    }
    const std::vector<tandem_weight> declared =
        tolerates_ ? std::vector<tandem_weight>{} : declared_weights();
    for (size_t i = 0; i < declared.size(); ++i) {
      if (declared[i].kind == TANDEM_STATE) continue;
      unwritten.add(fmt::format("weight '{}'", declared[i].name), weight_addresses[i]);
    }
    for (size_t i = 0; i < outputs_.size() && !forward; ++i) {
      unwritten.add(fmt::format("output {}", i), output_addresses[i]);
    }
    for (size_t i = 0; i < output_gradients.size(); ++i) {
      // A host that runs in place gives both gradients the same memory.
      if (in_place() && i == 0 && !input_gradients.empty()) continue;
      if (output_gradients[i] != nullptr) {
        unwritten.add(fmt::format("the gradient of output {}", i), output_gradients[i]);
      }
    }
    call_pass(function, flags, input_addresses, output_addresses, weight_addresses, input_gradients,
              output_gradients, weight_gradients, scratch,
              addend.empty() ? nullptr : addend[0].data());
    unwritten.check(setup_.type);
    weights_after_ = read(weights, weights_of_binding());
    if (tolerates_) return;
    std::vector<std::pair<std::string, const void*>> guarded{{"saved memory", saved_->data()},
                                                             {"scratch memory", scratch.data()}};
    const auto add = [&](const char* what, const std::vector<void*>& addresses) {
      for (size_t i = 0; i < addresses.size(); ++i) {
        if (addresses[i] != nullptr)
          guarded.emplace_back(fmt::format("{} {}", what, i), addresses[i]);
      }
    };
    add("input", input_addresses);
    add("output", output_addresses);
    add("weight", weight_addresses);
    add("the gradient of input", input_gradients);
    add("the gradient of output", output_gradients);
    add("the gradient of weight", weight_gradients);
    if (statistics_ != nullptr) guarded.emplace_back("the statistics", statistics_->data());
    for (const auto& [what, data] : guarded) {
      const std::string damage = GuardedMemory::damage_of(data);
      if (!damage.empty()) throw Violation(fmt::format("{}: {}: {}", setup_.type, what, damage));
    }
  }

  // Memory that a pass must leave as it is.
  class ReadOnly {
   public:
    explicit ReadOnly(bool tolerates) : tolerates_(tolerates) {}
    void add(std::string what, const void* data) {
      if (tolerates_) return;
      const auto* bytes = static_cast<const unsigned char*>(data);
      kept_.push_back({std::move(what), data, {bytes, bytes + GuardedMemory::bytes_of(data)}});
    }
    void check(const std::string& type) const {
      for (const Kept& kept : kept_) {
        const auto* now = static_cast<const unsigned char*>(kept.data);
        const auto differ = std::mismatch(kept.bytes.begin(), kept.bytes.end(), now);
        if (differ.first == kept.bytes.end()) continue;
        throw Violation(fmt::format("{}: {} was written (byte {}), but a pass may only read it",
                                    type, kept.what, differ.first - kept.bytes.begin()));
      }
    }

   private:
    struct Kept {
      std::string what;
      const void* data;
      std::vector<unsigned char> bytes;
    };
    bool tolerates_;
    std::vector<Kept> kept_;
  };

  // With all memory on the device for the time of the call.
  void call_pass(tandem_pass_function function, uint32_t flags, const std::vector<void*>& inputs,
                 const std::vector<void*>& outputs, const std::vector<void*>& weights,
                 const std::vector<void*>& input_gradients,
                 const std::vector<void*>& output_gradients,
                 const std::vector<void*>& weight_gradients, const GuardedMemory& scratch,
                 const void* addend) {
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
        labels.empty() ? nullptr : static_cast<const float*>(on.at(row_labels.data())),
        on.at(addend)};
    call([&](const tandem_call* call) { return function(handle_, call, &pass); });
  }

  std::vector<bool> unwanted_, absent_;
  std::vector<GuardedMemory> outputs_;
  std::unique_ptr<GuardedMemory> statistics_;
  int64_t statistics_count_ = 0;
  std::vector<PlainTensor> weights_after_;
  bool tolerates_ = false, shows_everything_ = false;
};

}  // namespace tandem::checker
