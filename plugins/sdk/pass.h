// The memory of one pass of a kernel: views of it where the host reads and writes it, addresses
// where a device has memory of its own. Elements are read as what they are, or it is an error.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "binding.h"

namespace tandem::sdk {

// The values of a tensor in memory that the host reads and writes, n rows of equal size in the
// layout of the binding. Null where a gradient is not wanted. It converts to a pointer and, as a
// range, to a std::span.
template <class T>
class TensorView {
 public:
  TensorView(T* data, int64_t rows, int64_t size) : data_(data), rows_(rows), size_(size) {}
  operator T*() const { return data_; }
  T* data() const { return data_; }
  size_t size() const { return data_ == nullptr ? 0 : static_cast<size_t>(size_); }
  T* begin() const { return data_; }
  T* end() const { return data_ + size(); }
  int64_t rows() const { return rows_; }
  std::span<T> row(int64_t i) const {
    const int64_t length = rows_ == 0 ? 0 : size_ / rows_;
    return {data_ + i * length, static_cast<size_t>(length)};
  }

 private:
  T* data_;
  int64_t rows_, size_;
};

// An address in the memory of a device, for a kernel that runs there. Null where a gradient is not
// wanted.
template <class T>
class DevicePointer {
 public:
  explicit DevicePointer(T* address) : address_(address) {}
  T* get() const { return address_; }
  explicit operator bool() const { return address_ != nullptr; }

 private:
  T* address_;
};

// What a pass knows of its tensors, from the binding.
struct TensorSizes {
  struct One {
    int64_t rows = 0, size = 0;
    int32_t dtype = TANDEM_FLOAT32;
  };
  explicit TensorSizes(const Binding& binding) {
    for (size_t i = 0; i < binding.input_count(); ++i) inputs.push_back(of(binding.input(i)));
    for (size_t i = 0; i < binding.output_count(); ++i) outputs.push_back(of(binding.output(i)));
    for (size_t i = 0; i < binding.weight_count(); ++i) {
      weights.push_back({binding.weight(i).n, count(binding.weight(i)), TANDEM_FLOAT32});
    }
  }
  static One of(const tandem_tensor& tensor) {
    return {tensor.shape.n, count(tensor.shape), tensor.dtype};
  }
  std::vector<One> inputs, outputs, weights;
};

inline size_t bytes_of(int32_t dtype) {
  if (dtype == TANDEM_UINT8) return 1;
  return dtype == TANDEM_BFLOAT16 || dtype == TANDEM_FLOAT16 ? 2 : 4;
}

// Refuses flags of a newer host that change what a kernel has to compute.
inline void require_known_flags(uint32_t flags) {
  if ((flags & TANDEM_REQUIRED_FLAGS) == 0) return;
  throw unsupported("the kernel was built for version ", TANDEM_LAYERS_MAJOR, ".",
                    TANDEM_LAYERS_MINOR, " of the layer tables and does not know the flags ",
                    flags & TANDEM_REQUIRED_FLAGS, " of this Tandem: rebuild its plugin");
}

// What Pass and DevicePass share: the tandem_pass, and a check that elements are read as what they
// are.
class PassBase {
 public:
  PassBase(const tandem_pass& pass, const TensorSizes& tensor_sizes)
      : raw(pass), sizes(tensor_sizes) {
    require_known_flags(raw.flags);
  }
  bool accumulate() const { return (raw.flags & TANDEM_ACCUMULATE) != 0; }

  const tandem_pass& raw;
  const TensorSizes& sizes;

 protected:
  template <class T>
  static void require_elements(const TensorSizes::One& tensor, const char* what, size_t i) {
    if (sizeof(T) == bytes_of(tensor.dtype)) return;
    throw failed("the kernel reads ", what, " ", i, " as elements of ", sizeof(T),
                 " bytes, but it has elements of ", bytes_of(tensor.dtype));
  }
};

// The memory of one pass, which the host reads and writes: of kernels on a cpu.
struct Pass : PassBase {
  using PassBase::PassBase;

  template <class T = float>
  TensorView<const T> input(size_t i) const {
    return view<const T>(raw.inputs[i], sizes.inputs[i], "input", i);
  }
  template <class T = float>
  TensorView<T> output(size_t i) const {
    return view<T>(raw.outputs[i], sizes.outputs[i], "output", i);
  }
  // Of a binding that fuses_sum(), like output 0; otherwise null.
  template <class T = float>
  TensorView<const T> addend() const {
    return view<const T>(raw.addend, sizes.outputs[0], "addend", 0);
  }
  TensorView<const float> weight(size_t i) const {
    return view<const float>(raw.weights[i], sizes.weights[i], "weight", i);
  }
  // A TANDEM_STATE weight.
  TensorView<float> state(size_t i) const {
    return view<float>(raw.weights[i], sizes.weights[i], "weight", i);
  }
  template <class T = float>
  TensorView<T> input_gradient(size_t i) const {
    return view<T>(raw.input_gradients[i], sizes.inputs[i], "input gradient", i);
  }
  template <class T = float>
  TensorView<const T> output_gradient(size_t i) const {
    return view<const T>(raw.output_gradients[i], sizes.outputs[i], "output gradient", i);
  }
  TensorView<float> weight_gradient(size_t i) const {
    return view<float>(raw.weight_gradients[i], sizes.weights[i], "weight gradient", i);
  }
  template <class T = float>
  T* saved() const {
    return static_cast<T*>(raw.saved);
  }
  template <class T = float>
  T* scratch() const {
    return static_cast<T*>(raw.scratch);
  }
  template <class T = float>
  T* statistics() const {
    return reinterpret_cast<T*>(raw.statistics);
  }
  const tandem_step& step() const { return *raw.step; }
  float normaliser() const { return *raw.normaliser; }
  // False: the row holds no sample, and a loss or metric must ignore it.
  bool holds_sample(int64_t row) const {
    return raw.row_labels == nullptr || !(raw.row_labels[row] < 0);
  }

 private:
  template <class T, class Address>
  static TensorView<T> view(Address* address, const TensorSizes::One& tensor, const char* what,
                            size_t i) {
    require_elements<T>(tensor, what, i);
    return {static_cast<T*>(address), tensor.rows, tensor.size};
  }
};

// The memory of one pass on a device with memory of its own: addresses to hand to what runs there.
struct DevicePass : PassBase {
  using PassBase::PassBase;

  template <class T = float>
  DevicePointer<const T> input(size_t i) const {
    return pointer<const T>(raw.inputs[i], sizes.inputs[i], "input", i);
  }
  template <class T = float>
  DevicePointer<T> output(size_t i) const {
    return pointer<T>(raw.outputs[i], sizes.outputs[i], "output", i);
  }
  // Of a binding that fuses_sum(), like output 0; otherwise null.
  template <class T = float>
  DevicePointer<const T> addend() const {
    return pointer<const T>(raw.addend, sizes.outputs[0], "addend", 0);
  }
  DevicePointer<const float> weight(size_t i) const {
    return DevicePointer(static_cast<const float*>(raw.weights[i]));
  }
  // A TANDEM_STATE weight.
  DevicePointer<float> state(size_t i) const {
    return DevicePointer(static_cast<float*>(raw.weights[i]));
  }
  template <class T = float>
  DevicePointer<T> input_gradient(size_t i) const {
    return pointer<T>(raw.input_gradients[i], sizes.inputs[i], "input gradient", i);
  }
  template <class T = float>
  DevicePointer<const T> output_gradient(size_t i) const {
    return pointer<const T>(raw.output_gradients[i], sizes.outputs[i], "output gradient", i);
  }
  DevicePointer<float> weight_gradient(size_t i) const {
    return DevicePointer(static_cast<float*>(raw.weight_gradients[i]));
  }
  template <class T = float>
  DevicePointer<T> saved() const {
    return DevicePointer(static_cast<T*>(raw.saved));
  }
  template <class T = float>
  DevicePointer<T> scratch() const {
    return DevicePointer(static_cast<T*>(raw.scratch));
  }
  template <class T = float>
  DevicePointer<T> statistics() const {
    return DevicePointer(reinterpret_cast<T*>(raw.statistics));
  }
  DevicePointer<const tandem_step> step() const { return DevicePointer(raw.step); }
  DevicePointer<const float> normaliser() const { return DevicePointer(raw.normaliser); }
  // One for each row, below zero where it holds no sample; null: all rows hold samples.
  DevicePointer<const float> row_labels() const { return DevicePointer(raw.row_labels); }

 private:
  template <class T, class Address>
  static DevicePointer<T> pointer(Address* address, const TensorSizes::One& tensor,
                                  const char* what, size_t i) {
    require_elements<T>(tensor, what, i);
    return DevicePointer<T>(static_cast<T*>(address));
  }
};

}  // namespace tandem::sdk
