// cuDNN's descriptors of tensors, filters and convolutions, with destructors.
#pragma once

#include <cstdint>

#include "plugins/cuda/libraries.h"

namespace tandem::cuda::detail {

inline int dnn_extent(int64_t extent) {
  if (extent <= 2147483647) return static_cast<int>(extent);
  throw sdk::unsupported("a tensor has an extent of ", extent,
                         ", but cuDNN supports at most 2147483647");
}

template <class Descriptor, cudnnStatus_t (*create)(Descriptor*),
          cudnnStatus_t (*destroy)(Descriptor)>
class Owned {
 public:
  Owned() { check(create(&descriptor_), "creating a descriptor"); }
  ~Owned() { static_cast<void>(destroy(descriptor_)); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  [[nodiscard]] Descriptor get() const { return descriptor_; }

 private:
  Descriptor descriptor_ = nullptr;
};
using TensorDescriptor =
    Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                                    cudnnDestroyConvolutionDescriptor>;

inline cudnnDataType_t dnn_type(int32_t dtype) {
  return dtype == TANDEM_BFLOAT16  ? CUDNN_DATA_BFLOAT16
         : dtype == TANDEM_FLOAT16 ? CUDNN_DATA_HALF
                                   : CUDNN_DATA_FLOAT;
}
inline cudnnTensorFormat_t dnn_format(bool channels_last) {
  return channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

inline void describe(const TensorDescriptor& descriptor, const tandem_shape& s, int32_t dtype,
                     bool channels_last) {
  check(cudnnSetTensor4dDescriptor(descriptor.get(), dnn_format(channels_last), dnn_type(dtype),
                                   dnn_extent(s.n), dnn_extent(s.c), dnn_extent(s.h),
                                   dnn_extent(s.w)),
        "cudnnSetTensor4dDescriptor");
}
inline void describe(const FilterDescriptor& descriptor, const tandem_shape& s, int32_t dtype,
                     bool channels_last) {
  check(cudnnSetFilter4dDescriptor(descriptor.get(), dnn_type(dtype), dnn_format(channels_last),
                                   dnn_extent(s.n), dnn_extent(s.c), dnn_extent(s.h),
                                   dnn_extent(s.w)),
        "cudnnSetFilter4dDescriptor");
}

}  // namespace tandem::cuda::detail
