// Descriptors of cuDNN's graph interface: created, filled with attributes, finalized, and destroyed
// with the object. cuDNN takes attributes as untyped arrays beside the name of their type; here the
// C++ type gives that name. Every function throws Refusal with cuDNN's reason, except those that
// return a status.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "plugins/cuda/libraries.h"

namespace tandem::cuda::detail {

template <class Value>
constexpr cudnnBackendAttributeType_t attribute_type() {
  if constexpr (std::is_same_v<Value, int64_t>) {
    return CUDNN_TYPE_INT64;
  } else if constexpr (std::is_same_v<Value, float>) {
    return CUDNN_TYPE_FLOAT;
  } else if constexpr (std::is_same_v<Value, void*>) {
    return CUDNN_TYPE_VOID_PTR;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return CUDNN_TYPE_BOOLEAN;
  } else if constexpr (std::is_same_v<Value, cudnnPointwiseMode_t>) {
    return CUDNN_TYPE_POINTWISE_MODE;
  } else if constexpr (std::is_same_v<Value, cudnnNanPropagation_t>) {
    return CUDNN_TYPE_NAN_PROPOGATION;
  } else if constexpr (std::is_same_v<Value, cudnnHandle_t>) {
    return CUDNN_TYPE_HANDLE;
  } else if constexpr (std::is_same_v<Value, cudnnDataType_t>) {
    return CUDNN_TYPE_DATA_TYPE;
  } else if constexpr (std::is_same_v<Value, cudnnConvolutionMode_t>) {
    return CUDNN_TYPE_CONVOLUTION_MODE;
  } else if constexpr (std::is_same_v<Value, cudnnBackendHeurMode_t>) {
    return CUDNN_TYPE_HEUR_MODE;
  } else if constexpr (std::is_same_v<Value, cudnnBackendKnobType_t>) {
    return CUDNN_TYPE_KNOB_TYPE;
  } else if constexpr (std::is_same_v<Value, cudnnBackendNumericalNote_t>) {
    return CUDNN_TYPE_NUMERICAL_NOTE;
  } else if constexpr (std::is_same_v<Value, cudnnBackendBehaviorNote_t>) {
    return CUDNN_TYPE_BEHAVIOR_NOTE;
  } else {
    static_assert(sizeof(Value) == 0, "cuDNN has no attributes of this type");
  }
}

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t kind) {
    check(cudnnBackendCreateDescriptor(kind, &descriptor_), "cudnnBackendCreateDescriptor");
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) static_cast<void>(cudnnBackendDestroyDescriptor(descriptor_));
  }
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  [[nodiscard]] cudnnBackendDescriptor_t raw() const { return descriptor_; }

  template <class Value>
  void set(cudnnBackendAttributeName_t name, const Value& value) {
    set(name, attribute_type<Value>(), 1, &value);
  }
  template <class Value, size_t count>
  void set(cudnnBackendAttributeName_t name, const std::array<Value, count>& values) {
    set(name, attribute_type<Value>(), count, values.data());
  }
  template <class Value>
  void set(cudnnBackendAttributeName_t name, const Value* values, size_t count) {
    set(name, attribute_type<Value>(), count, values);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& values) {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const Descriptor& value : values) raw.push_back(value.descriptor_);
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
  }

  [[nodiscard]] cudnnStatus_t try_finalize() { return cudnnBackendFinalize(descriptor_); }
  void finalize() { check(try_finalize(), "cudnnBackendFinalize"); }

  // All values of the attribute; at most `most`.
  template <class Value>
  [[nodiscard]] std::vector<Value> get_all(cudnnBackendAttributeName_t name, size_t most) const {
    std::vector<Value> values(most);
    values.resize(get(name, attribute_type<Value>(), most, values.data()));
    return values;
  }
  template <class Value>
  [[nodiscard]] Value get(cudnnBackendAttributeName_t name) const {
    Value value{};
    get(name, attribute_type<Value>(), 1, &value);
    return value;
  }
  // An attribute of descriptors, which cuDNN fills in where it is given empty ones; at most `most`.
  [[nodiscard]] std::vector<Descriptor> get_descriptors(cudnnBackendAttributeName_t name,
                                                        cudnnBackendDescriptorType_t kind,
                                                        size_t most) const {
    std::vector<Descriptor> descriptors;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (size_t i = 0; i < most; ++i) raw.push_back(descriptors.emplace_back(kind).descriptor_);
    if (most == 0) return descriptors;
    const size_t count = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
    while (descriptors.size() > count) descriptors.pop_back();
    return descriptors;
  }
  [[nodiscard]] size_t count_descriptors(cudnnBackendAttributeName_t name) const {
    return get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  }

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
           const void* values) {
    check(cudnnBackendSetAttribute(descriptor_, name, type, static_cast<int64_t>(count), values),
          "cudnnBackendSetAttribute");
  }
  // The number of values that were read; if none was asked for, the number that there are.
  size_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t most,
             void* values) const {
    int64_t count = 0;
    check(cudnnBackendGetAttribute(descriptor_, name, type, static_cast<int64_t>(most), &count,
                                   values),
          "cudnnBackendGetAttribute");
    return most == 0 ? static_cast<size_t>(count) : std::min(static_cast<size_t>(count), most);
  }

  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace tandem::cuda::detail
