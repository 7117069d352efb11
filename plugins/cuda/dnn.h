// Convolutions by cuDNN, in float32 on plain NCHW tensors: the three passes of y = w * x.
//
// This is cuDNN's older interface (cudnnConvolutionForward and its kin), which version 9 still has:
// unlike engines of the graph interface, each of its algorithms is known by name to be
// deterministic or not, and takes any stride, padding, dilation and group. The algorithm is
// the fastest by cuDNN's own model of the gpu, not by measuring: the same shapes on the same gpu
// and library choose the same one, so that a run that is repeated or resumed gives the same bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <tuple>
#include <utility>

#include "plugins/cuda/libraries.h"

namespace tandem::cuda {

// y = w * x: x is (n, c, h, w), the weights (y's channels, c / group, kernel).
struct ConvolutionShape {
  tandem_shape x, weight, y;
  int64_t group;
  struct Pair {
    int64_t h, w;
  } stride, pad, dilation;
};

namespace detail {

inline int dnn_extent(int64_t extent) {
  if (extent <= 2147483647) return static_cast<int>(extent);
  throw sdk::unsupported("a tensor has an extent of ", extent,
                         ", but cuDNN takes at most 2147483647");
}

// A descriptor of cuDNN's, destroyed with this object.
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

inline void describe(const TensorDescriptor& descriptor, const tandem_shape& s) {
  check(cudnnSetTensor4dDescriptor(descriptor.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   dnn_extent(s.n), dnn_extent(s.c), dnn_extent(s.h),
                                   dnn_extent(s.w)),
        "cudnnSetTensor4dDescriptor");
}

}  // namespace detail

class Convolution {
 public:
  // An algorithm may want this much scratch memory at most.
  static constexpr int64_t most_scratch = int64_t{256} << 20;

  Convolution(const sdk::Call& call, const ConvolutionShape& shape, bool backward_data,
              bool backward_weights) {
    const ConvolutionShape& s = shape;
    using detail::dnn_extent;
    detail::describe(x_, s.x);
    detail::describe(y_, s.y);
    check(cudnnSetFilter4dDescriptor(weight_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                     dnn_extent(s.weight.n), dnn_extent(s.weight.c),
                                     dnn_extent(s.weight.h), dnn_extent(s.weight.w)),
          "cudnnSetFilter4dDescriptor");
    check(cudnnSetConvolution2dDescriptor(window_.get(), dnn_extent(s.pad.h), dnn_extent(s.pad.w),
                                          dnn_extent(s.stride.h), dnn_extent(s.stride.w),
                                          dnn_extent(s.dilation.h), dnn_extent(s.dilation.w),
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(cudnnSetConvolutionGroupCount(window_.get(), dnn_extent(s.group)),
          "cudnnSetConvolutionGroupCount");
    // All bits of float32: no TF32.
    check(cudnnSetConvolutionMathType(window_.get(), CUDNN_FMA_MATH),
          "cudnnSetConvolutionMathType");
    choose(dnn_of(call), backward_data, backward_weights);
  }

  // Of the algorithms that were chosen; the largest, and by name for people.
  [[nodiscard]] int64_t scratch_bytes() const {
    return static_cast<int64_t>(
        std::max({forward_bytes_, backward_data_bytes_, backward_weights_bytes_}));
  }
  [[nodiscard]] std::string algorithm() const {
    std::string text = "cuDNN forward " + std::to_string(forward_);
    if (wants_data_) text += ", backward data " + std::to_string(backward_data_);
    if (wants_weights_) text += ", backward weights " + std::to_string(backward_weights_);
    return text;
  }

  void forward(const sdk::Call& call, const float* x, const float* weight, float* y,
               void* scratch) const {
    const float one = 1, zero = 0;
    check(cudnnConvolutionForward(dnn_of(call), &one, x_.get(), x, weight_.get(), weight,
                                  window_.get(), forward_, scratch, forward_bytes_, &zero, y_.get(),
                                  y),
          "cudnnConvolutionForward");
  }
  void backward_data(const sdk::Call& call, const float* weight, const float* dy, float* dx,
                     void* scratch) const {
    const float one = 1, zero = 0;
    check(cudnnConvolutionBackwardData(dnn_of(call), &one, weight_.get(), weight, y_.get(), dy,
                                       window_.get(), backward_data_, scratch, backward_data_bytes_,
                                       &zero, x_.get(), dx),
          "cudnnConvolutionBackwardData");
  }
  void backward_weights(const sdk::Call& call, const float* x, const float* dy, float* dw,
                        bool accumulate, void* scratch) const {
    const float one = 1, kept = accumulate ? 1.0F : 0.0F;
    check(cudnnConvolutionBackwardFilter(dnn_of(call), &one, x_.get(), x, y_.get(), dy,
                                         window_.get(), backward_weights_, scratch,
                                         backward_weights_bytes_, &kept, weight_.get(), dw),
          "cudnnConvolutionBackwardFilter");
  }

 private:
  // Of the fastest first, the first that may be used; else of those that always may.
  template <class Candidate, size_t count, class Bytes>
  static std::pair<decltype(Candidate::algo), size_t> first_usable(
      const std::array<Candidate, count>& candidates, int found,
      std::initializer_list<decltype(Candidate::algo)> always, const char* pass,
      const Bytes& bytes_of) {
    size_t bytes = 0;
    const auto fits = [&](auto algorithm) {
      return bytes_of(algorithm, &bytes) == CUDNN_STATUS_SUCCESS &&
             static_cast<int64_t>(bytes) <= most_scratch;
    };
    for (int i = 0; i < found; ++i) {
      const Candidate& candidate = candidates[static_cast<size_t>(i)];
      const bool exact =
          candidate.mathType == CUDNN_FMA_MATH || candidate.mathType == CUDNN_DEFAULT_MATH;
      if (candidate.status == CUDNN_STATUS_SUCCESS && exact &&
          candidate.determinism == CUDNN_DETERMINISTIC && fits(candidate.algo)) {
        return {candidate.algo, bytes};
      }
    }
    for (const auto algorithm : always) {
      if (fits(algorithm)) return {algorithm, bytes};
    }
    throw sdk::unsupported("cuDNN has no deterministic ", pass, " algorithm for these shapes in ",
                           most_scratch >> 20, " MiB of scratch memory");
  }

  // cuDNN lists an algorithm once for each kind of arithmetic.
  static constexpr size_t kinds = 2;

  void choose(cudnnHandle_t handle, bool backward_data, bool backward_weights) {
    int found = 0;
    std::array<cudnnConvolutionFwdAlgoPerf_t, kinds * CUDNN_CONVOLUTION_FWD_ALGO_COUNT> all{};
    check(cudnnGetConvolutionForwardAlgorithm_v7(handle, x_.get(), weight_.get(), window_.get(),
                                                 y_.get(), static_cast<int>(all.size()), &found,
                                                 all.data()),
          "cudnnGetConvolutionForwardAlgorithm_v7");
    std::tie(forward_, forward_bytes_) = first_usable(
        all, found,
        {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
         CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
        "forward", [&](auto algorithm, size_t* bytes) {
          return cudnnGetConvolutionForwardWorkspaceSize(handle, x_.get(), weight_.get(),
                                                         window_.get(), y_.get(), algorithm, bytes);
        });
    wants_data_ = backward_data;
    if (backward_data) choose_backward_data(handle);
    wants_weights_ = backward_weights;
    if (backward_weights) choose_backward_weights(handle);
  }
  void choose_backward_data(cudnnHandle_t handle) {
    int found = 0;
    std::array<cudnnConvolutionBwdDataAlgoPerf_t, kinds * CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT>
        all{};
    check(cudnnGetConvolutionBackwardDataAlgorithm_v7(
              handle, weight_.get(), y_.get(), window_.get(), x_.get(),
              static_cast<int>(all.size()), &found, all.data()),
          "cudnnGetConvolutionBackwardDataAlgorithm_v7");
    std::tie(backward_data_, backward_data_bytes_) = first_usable(
        all, found, {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1}, "backward data",
        [&](auto algorithm, size_t* bytes) {
          return cudnnGetConvolutionBackwardDataWorkspaceSize(
              handle, weight_.get(), y_.get(), window_.get(), x_.get(), algorithm, bytes);
        });
  }
  void choose_backward_weights(cudnnHandle_t handle) {
    int found = 0;
    std::array<cudnnConvolutionBwdFilterAlgoPerf_t, kinds * CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT>
        all{};
    check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x_.get(), y_.get(), window_.get(),
                                                        weight_.get(), static_cast<int>(all.size()),
                                                        &found, all.data()),
          "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
    std::tie(backward_weights_, backward_weights_bytes_) = first_usable(
        all, found, {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}, "backward weights",
        [&](auto algorithm, size_t* bytes) {
          return cudnnGetConvolutionBackwardFilterWorkspaceSize(
              handle, x_.get(), y_.get(), window_.get(), weight_.get(), algorithm, bytes);
        });
  }

  detail::TensorDescriptor x_, y_;
  detail::FilterDescriptor weight_;
  detail::ConvolutionDescriptor window_;
  bool wants_data_ = false, wants_weights_ = false;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t backward_data_{};
  cudnnConvolutionBwdFilterAlgo_t backward_weights_{};
  size_t forward_bytes_ = 0, backward_data_bytes_ = 0, backward_weights_bytes_ = 0;
};

}  // namespace tandem::cuda
