// One layer, bound as the host would bind it: parameters checked, shapes computed, slices cut,
// kernel prepared, in any layout and dtype. layer_run.h runs its passes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/guarded_memory.h"
#include "core/check/layer/kernel_device.h"
#include "core/check/layer/tensor.h"
#include "core/plugin/attributes.h"
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
  int64_t batch_begin = 0, batch_size = 0;  // 0: the rows up to the last one
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

// Those that the layer has. Throws Error for invalid parameters, as the host does.
[[nodiscard]] Attributes attributes_of(const tandem_layer_type& type, const LayerSetup& setup);

// A question to the layer's type, for inputs of these shapes. It borrows the attributes and shapes.
[[nodiscard]] tandem_layer_query query_of(const LayerSetup& setup, const Attributes& attributes,
                                          const std::vector<Shape>& inputs);

class LayerBinding {
 public:
  // Throws Error with the plugin's reason if shapes or the kernel refuse. `registry` and `device`
  // outlive it.
  LayerBinding(LayerSetup setup, const Registry& registry, KernelDevice& device);
  ~LayerBinding();
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
  [[nodiscard]] std::vector<tandem_layout_option> layouts() const;
  // The weights that the type declares.
  [[nodiscard]] std::vector<tandem_weight> declared_weights() const;
  [[nodiscard]] tandem_layer_query query() const {
    return query_of(setup_, attributes_, input_shapes_);
  }

  LayerSetup& setup() { return setup_; }

 protected:
  [[nodiscard]] bool in_place() const { return (setup_.flags & TANDEM_RUNS_IN_PLACE) != 0; }
  [[nodiscard]] std::vector<tandem_tensor> weights_of_binding() const;
  void call(const KernelDevice::Work& work) const;

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

 private:
  void ask_shapes();
  void cut();
  void describe();
  void prepare();
};

}  // namespace tandem::checker
