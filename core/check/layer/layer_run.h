// Runs one layer as the host would, from plain tensors to plain tensors. Every buffer is filled
// with NaN before a pass and has guards around it, so that reads of unwritten memory and writes out
// of bounds are detected. After each pass, memory that the kernel must not write is compared.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/check/layer/layer_binding.h"

namespace tandem::checker {

// Memory that a kernel wrote, but must not.
class Violation : public Error {
 public:
  using Error::Error;
};

// Results of statistics passes, one for each other part of the batch.
using OtherParts = std::vector<std::vector<float>>;

// Each pass throws Violation.
class LayerRun : public LayerBinding {
 public:
  using LayerBinding::LayerBinding;
  // Whether passes do not look for what they must not write.
  void tolerate_violations(bool tolerates = true) { tolerates_ = tolerates; }
  // Backward passes get inputs and outputs even if the traits do not name them.
  void show_everything() { shows_everything_ = true; }

  // Inputs of the shape of input 0 have its memory, as those of a net that uses a tensor twice.
  void share_inputs() { shares_inputs_ = true; }

  // The inputs whose gradient is not wanted; the outputs whose gradient does not exist (zeros).
  void leave_out(std::vector<bool> input_gradients, std::vector<bool> output_gradients) {
    unwanted_ = std::move(input_gradients);
    absent_ = std::move(output_gradients);
  }

  // From now on a pass that touches the second half of this tensor waits there until `meanwhile`
  // has run (halting_memory.h). For host memory.
  enum class Halt { nowhere, input, output, input_gradient, output_gradient };
  void halt_at(Halt kind, size_t index, std::function<void()> meanwhile) {
    halt_ = kind;
    halt_index_ = index;
    meanwhile_ = std::move(meanwhile);
  }

  // With statistics: of these inputs alone, or together with those of other parts of the batch, in
  // this order, each as forward_statistics() returned them.
  std::vector<PlainTensor> forward(const OtherParts& others = {});

  // The result of the statistics pass for these inputs alone; after forward(), the statistics that
  // it read.
  std::vector<float> forward_statistics();
  [[nodiscard]] std::vector<float> statistics() const;
  // The weights after the last pass: states change.
  [[nodiscard]] const std::vector<PlainTensor>& weights_after() const { return weights_after_; }

  // In place of forward(): what it wrote for a layer of the same setup.
  void take_outputs_of(const LayerRun& other);

  // After forward(). A label input's gradient is not wanted and is returned empty. With statistics:
  // as in forward(), those of the others are added.
  std::vector<PlainTensor> backward_data(const std::vector<PlainTensor>& output_gradients,
                                         const OtherParts& others = {});

  // After forward(): of these output gradients alone.
  std::vector<float> backward_statistics(const std::vector<PlainTensor>& output_gradients);

  // After forward(): all gradients by the one call that a kernel may offer for both passes.
  std::pair<std::vector<PlainTensor>, std::vector<PlainTensor>> backward(
      const std::vector<PlainTensor>& output_gradients);

  // After forward(). With `start`, the gradients are added to it. A state has none, and it is
  // returned empty. With statistics: as in backward_data().
  std::vector<PlainTensor> backward_weights(const std::vector<PlainTensor>& output_gradients,
                                            const std::vector<PlainTensor>& start = {},
                                            const OtherParts& others = {});

 private:
  using Addresses = std::vector<void*>;
  // The memory of a pass: addresses on the host, null where the kernel gets none.
  struct Memory {
    Addresses output_gradients, input_gradients, weight_gradients;
    Addresses inputs{}, outputs{}, weights{};
    const void *scratch = nullptr, *addend = nullptr;
  };
  // What a pass must leave as it is, and its bytes before the pass.
  struct ReadOnly {
    std::string what;
    const void* data;
    std::vector<unsigned char> bytes;
  };

  [[nodiscard]] std::vector<GuardedMemory> make(const std::vector<tandem_tensor>& tensors) const;
  [[nodiscard]] std::vector<GuardedMemory> write(const std::vector<PlainTensor>& values,
                                                 const std::vector<tandem_tensor>& tensors) const;
  [[nodiscard]] Addresses output_pointers(const std::vector<GuardedMemory>& memory) const;
  // Of the gradients that are wanted.
  [[nodiscard]] Addresses input_gradient_pointers(
      const std::vector<GuardedMemory>& memory,
      const std::vector<GuardedMemory>& output_gradients) const;
  [[nodiscard]] std::vector<PlainTensor> read_input_gradients(const Addresses& addresses) const;
  [[nodiscard]] Addresses weight_gradient_pointers(const std::vector<GuardedMemory>& memory) const;
  [[nodiscard]] std::vector<PlainTensor> read_weight_gradients(const Addresses& addresses) const;

  void run_statistics(tandem_pass_function function, const Addresses& output_gradients,
                      int64_t floats);
  void run_backward_statistics(const std::vector<GuardedMemory>& output_gradients,
                               const OtherParts& others);
  void merge(const OtherParts& others);  // in one call
  void add_to_statistics(const std::vector<float>& other);
  void run(tandem_pass_function function, bool is_forward, Memory memory, uint32_t flags = 0);
  void call_pass(tandem_pass_function function, uint32_t flags, const Memory& memory);
  [[nodiscard]] std::vector<ReadOnly> read_only(const Memory& memory, bool is_forward) const;
  void check_unwritten(const std::vector<ReadOnly>& before) const;
  void check_guards(const Memory& memory) const;

  // Where this pass has the tensor; else, and of one without memory, nullptr.
  [[nodiscard]] void** halting_address(Addresses& inputs, Addresses& outputs,
                                       Addresses& input_gradients,
                                       Addresses& output_gradients) const;

  std::vector<bool> unwanted_, absent_;
  Halt halt_ = Halt::nowhere;
  size_t halt_index_ = 0;
  std::function<void()> meanwhile_;
  std::vector<GuardedMemory> outputs_;
  std::unique_ptr<GuardedMemory> statistics_;
  int64_t statistics_count_ = 0;
  std::vector<PlainTensor> weights_after_;
  bool tolerates_ = false, shows_everything_ = false, shares_inputs_ = false;
};

}  // namespace tandem::checker
