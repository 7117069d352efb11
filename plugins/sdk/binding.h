// One use of a layer, as its kernel sees it when it is made: shapes, layouts, dtypes, flags and
// parameters; and what a kernel may ask for.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "parameters.h"

namespace tandem::sdk {

using Call = tandem_call;

// Element `i` of an array whose elements, of a caller with another minor version, may be larger
// than ours.
template <class T>
T& element(T* array, size_t i, uint32_t size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(array) + i * size);
}

struct Binding {
  explicit Binding(const tandem_binding& binding) : raw(binding), attributes(binding.attributes) {}
  const tandem_tensor& input(size_t i) const { return element(raw.inputs, i, raw.tensor_size); }
  const tandem_tensor& output(size_t i) const { return element(raw.outputs, i, raw.tensor_size); }
  const Shape& weight(size_t i) const { return raw.weights[i]; }
  size_t input_count() const { return raw.input_count; }
  size_t output_count() const { return raw.output_count; }
  size_t weight_count() const { return raw.weight_count; }
  bool training() const { return raw.phase == TANDEM_TRAIN; }
  bool has(uint32_t flag) const { return (raw.flags & flag) != 0; }
  // The element of a whole row at which a sliced input 0 begins.
  int64_t input_begin() const { return raw.input_begin; }
  // The known algorithm (plugins/abi/layers.h), which must be used again. nullptr: it chooses.
  const char* algorithm() const { return raw.algorithm; }
  // The activation that forward applies to each element of output 0.
  int32_t activation() const { return raw.fused_activation; }
  bool fuses_relu() const { return activation() == TANDEM_ACTIVATION_RELU; }
  // Whether forward adds the pass's addend to output 0, before the activation.
  bool fuses_sum() const { return has(TANDEM_FUSED_SUM); }
  // Whether backward_data gives the gradient of the values before a ReLU that made input 0.
  bool follows_relu() const { return raw.activation_before == TANDEM_ACTIVATION_RELU; }

  const tandem_binding& raw;
  Attributes attributes;
};

// The `fused_activations` of a kernel that can fuse a ReLU, and `gradients_before` alike.
constexpr uint32_t relu_only = 1U << TANDEM_ACTIVATION_RELU;

// A base class for kernels that need more memory than their tensors.
struct Needs {
  int64_t saved_bytes = 0;
  int64_t scratch_bytes = 0;
  int64_t statistics = 0;
  std::string algorithm;
  bool is_measured = false;  // see tandem_kernel_report
};

using LayoutOptions = std::vector<tandem_layout_option>;

// For kernels that work on elements in any order: every plain and blocked layout, the same for
// input and output.
inline LayoutOptions any_layout(int64_t channels) {
  LayoutOptions options{{TANDEM_NCHW, TANDEM_NCHW, 0}, {TANDEM_NHWC, TANDEM_NHWC, 0}};
  if (channels % 8 == 0) options.push_back({TANDEM_NCHW8C, TANDEM_NCHW8C, 0});
  if (channels % 16 == 0) options.push_back({TANDEM_NCHW16C, TANDEM_NCHW16C, 0});
  return options;
}

}  // namespace tandem::sdk
