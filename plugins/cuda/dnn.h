// Convolutions by cuDNN: the three passes of y = w * x.
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

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/descriptors.h"

namespace tandem::cuda {

namespace detail {

// Of one pass. The kind of arithmetic is part of cuDNN's description of the convolution.
template <class Algorithm>
struct ChosenConvolution {
  ConvolutionDescriptor window;
  bool is_wanted = false;
  Algorithm algorithm{};
  bool on_tensor_cores = false;
  size_t bytes = 0;

  // "algorithm 1 on tensor cores", by cuDNN's numbers.
  [[nodiscard]] std::string text() const {
    return "algorithm " + std::to_string(algorithm) + (on_tensor_cores ? " on tensor cores" : "");
  }
};

}  // namespace detail

class Convolution {
 public:
  // An algorithm may want this much scratch memory at most.
  static constexpr int64_t most_scratch = int64_t{256} << 20;

  // Throws Refusal where this gpu does not know the kind.
  Convolution(const sdk::Call& call, const ConvolutionShape& shape, const ConvolutionKind& kind,
              bool backward_data, bool backward_weights)
      : kind_(kind), is_ampere_(compute_capability_major() >= 8) {
    demand_computable(kind.dtype, kind.allows_tf32);
    detail::describe(x_, shape.x, kind.dtype, kind.channels_last);
    detail::describe(y_, shape.y, kind.dtype, kind.channels_last);
    detail::describe(weight_, shape.weight, kind.dtype, kind.channels_last);
    backward_data_.is_wanted = backward_data;
    backward_weights_.is_wanted = backward_weights;
    describe_window(forward_.window, shape);
    describe_window(backward_data_.window, shape);
    describe_window(backward_weights_.window, shape);
    choose_forward(dnn_of(call));
    if (backward_data) choose_backward_data(dnn_of(call));
    if (backward_weights) choose_backward_weights(dnn_of(call));
  }

  // Of the algorithms that were chosen; the largest, and by number for people.
  [[nodiscard]] int64_t scratch_bytes() const {
    return static_cast<int64_t>(
        std::max({forward_.bytes, backward_data_.bytes, backward_weights_.bytes}));
  }
  [[nodiscard]] std::string algorithm() const {
    const std::string there = forward_.text(),
                      back = backward_data_.is_wanted ? backward_data_.text() : "";
    std::string text = "cuDNN forward " + (kind_.deconvolves ? back : there);
    const std::string& data = kind_.deconvolves ? there : back;
    if (!data.empty()) text += ", backward data " + data;
    if (backward_weights_.is_wanted) text += ", backward weights " + backward_weights_.text();
    return text;
  }

  // Tensors and weights are of the kind's dtype.
  void forward(const sdk::Call& call, const void* x, const void* weight, void* y,
               void* scratch) const {
    const float one = 1, zero = 0;
    check(cudnnConvolutionForward(dnn_of(call), &one, x_.get(), x, weight_.get(), weight,
                                  forward_.window.get(), forward_.algorithm, scratch,
                                  forward_.bytes, &zero, y_.get(), y),
          "cudnnConvolutionForward");
  }
  void backward_data(const sdk::Call& call, const void* weight, const void* dy, void* dx,
                     void* scratch) const {
    const float one = 1, zero = 0;
    check(cudnnConvolutionBackwardData(dnn_of(call), &one, weight_.get(), weight, y_.get(), dy,
                                       backward_data_.window.get(), backward_data_.algorithm,
                                       scratch, backward_data_.bytes, &zero, x_.get(), dx),
          "cudnnConvolutionBackwardData");
  }
  void backward_weights(const sdk::Call& call, const void* x, const void* dy, void* dw,
                        bool accumulate, void* scratch) const {
    const float one = 1, kept = accumulate ? 1.0F : 0.0F;
    check(
        cudnnConvolutionBackwardFilter(dnn_of(call), &one, x_.get(), x, y_.get(), dy,
                                       backward_weights_.window.get(), backward_weights_.algorithm,
                                       scratch, backward_weights_.bytes, &kept, weight_.get(), dw),
        "cudnnConvolutionBackwardFilter");
  }

 private:
  void describe_window(const detail::ConvolutionDescriptor& window,
                       const ConvolutionShape& s) const {
    using detail::dnn_extent;
    check(cudnnSetConvolution2dDescriptor(window.get(), dnn_extent(s.pad.h), dnn_extent(s.pad.w),
                                          dnn_extent(s.stride.h), dnn_extent(s.stride.w),
                                          dnn_extent(s.dilation.h), dnn_extent(s.dilation.w),
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(cudnnSetConvolutionGroupCount(window.get(), dnn_extent(s.group)),
          "cudnnSetConvolutionGroupCount");
    set_math(window, wanted_math());
  }
  static void set_math(const detail::ConvolutionDescriptor& window, cudnnMathType_t math) {
    check(cudnnSetConvolutionMathType(window.get(), math), "cudnnSetConvolutionMathType");
  }
  // What cuDNN is asked about: tensor cores for 16 bits; of float32 default arithmetic rounds to
  // TF32, and FMA keeps all bits.
  [[nodiscard]] cudnnMathType_t wanted_math() const {
    if (kind_.dtype != TANDEM_FLOAT32) return CUDNN_TENSOR_OP_MATH;
    return kind_.allows_tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  }
  // An answer's kind of arithmetic as this convolution may use it. What would convert float32 to
  // 16 bits is none that the user asked for.
  [[nodiscard]] bool may_use(cudnnMathType_t math) const {
    if (math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) return false;
    return wanted_math() != CUDNN_FMA_MATH || math != CUDNN_TENSOR_OP_MATH;
  }

  // Of the fastest first, the first that may be used; else of those that always may.
  template <class Algorithm, class Candidate, size_t count, class Bytes>
  void choose(detail::ChosenConvolution<Algorithm>& chosen,
              const std::array<Candidate, count>& candidates, int found,
              std::initializer_list<Algorithm> always, const char* pass, const Bytes& bytes_of) {
    const auto fits = [&](Algorithm algorithm, cudnnMathType_t math) {
      chosen.algorithm = algorithm;
      if (wanted_math() == CUDNN_FMA_MATH) math = CUDNN_FMA_MATH;
      set_math(chosen.window, math);
      // Default arithmetic has used them since Ampere.
      chosen.on_tensor_cores =
          math == CUDNN_TENSOR_OP_MATH || (math == CUDNN_DEFAULT_MATH && is_ampere_);
      return bytes_of(algorithm, &chosen.bytes) == CUDNN_STATUS_SUCCESS &&
             static_cast<int64_t>(chosen.bytes) <= most_scratch;
    };
    for (size_t i = 0; i < std::min(static_cast<size_t>(found), count); ++i) {
      const Candidate& candidate = candidates[i];
      if (candidate.status == CUDNN_STATUS_SUCCESS && may_use(candidate.mathType) &&
          candidate.determinism == CUDNN_DETERMINISTIC &&
          fits(candidate.algo, candidate.mathType)) {
        return;
      }
    }
    for (const Algorithm algorithm : always) {
      if (fits(algorithm, wanted_math())) return;
    }
    throw sdk::unsupported("cuDNN has no deterministic ", pass, " algorithm for these shapes in ",
                           most_scratch >> 20, " MiB of scratch memory", way_out());
  }
  [[nodiscard]] const char* way_out() const {
    if (kind_.dtype != TANDEM_FLOAT32) return ": use --precision tf32 or float32";
    return kind_.allows_tf32 ? ": use --precision float32" : "";
  }
  // A query that says NOT_SUPPORTED has found nothing; what always may be used is tried all the
  // same.
  static int found_by(cudnnStatus_t status, const int& found, const char* query) {
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return 0;
    check(status, query);
    return found;
  }

  // cuDNN lists an algorithm once for each kind of arithmetic.
  static constexpr size_t kinds = 3;

  void choose_forward(cudnnHandle_t handle) {
    const cudnnConvolutionDescriptor_t window = forward_.window.get();
    int found = 0;
    std::array<cudnnConvolutionFwdAlgoPerf_t, kinds * CUDNN_CONVOLUTION_FWD_ALGO_COUNT> all{};
    const cudnnStatus_t status =
        cudnnGetConvolutionForwardAlgorithm_v7(handle, x_.get(), weight_.get(), window, y_.get(),
                                               static_cast<int>(all.size()), &found, all.data());
    choose(forward_, all, found_by(status, found, "cudnnGetConvolutionForwardAlgorithm_v7"),
           {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
           kind_.deconvolves ? "backward data" : "forward", [&](auto algorithm, size_t* bytes) {
             return cudnnGetConvolutionForwardWorkspaceSize(handle, x_.get(), weight_.get(), window,
                                                            y_.get(), algorithm, bytes);
           });
  }
  void choose_backward_data(cudnnHandle_t handle) {
    const cudnnConvolutionDescriptor_t window = backward_data_.window.get();
    int found = 0;
    std::array<cudnnConvolutionBwdDataAlgoPerf_t, kinds * CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT>
        all{};
    const cudnnStatus_t status = cudnnGetConvolutionBackwardDataAlgorithm_v7(
        handle, weight_.get(), y_.get(), window, x_.get(), static_cast<int>(all.size()), &found,
        all.data());
    choose(backward_data_, all,
           found_by(status, found, "cudnnGetConvolutionBackwardDataAlgorithm_v7"),
           {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1}, kind_.deconvolves ? "forward" : "backward data",
           [&](auto algorithm, size_t* bytes) {
             return cudnnGetConvolutionBackwardDataWorkspaceSize(
                 handle, weight_.get(), y_.get(), window, x_.get(), algorithm, bytes);
           });
  }
  void choose_backward_weights(cudnnHandle_t handle) {
    const cudnnConvolutionDescriptor_t window = backward_weights_.window.get();
    int found = 0;
    std::array<cudnnConvolutionBwdFilterAlgoPerf_t, kinds * CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT>
        all{};
    const cudnnStatus_t status = cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle, x_.get(), y_.get(), window, weight_.get(), static_cast<int>(all.size()), &found,
        all.data());
    choose(backward_weights_, all,
           found_by(status, found, "cudnnGetConvolutionBackwardFilterAlgorithm_v7"),
           {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}, "backward weights",
           [&](auto algorithm, size_t* bytes) {
             return cudnnGetConvolutionBackwardFilterWorkspaceSize(
                 handle, x_.get(), y_.get(), window, weight_.get(), algorithm, bytes);
           });
  }

  ConvolutionKind kind_;
  bool is_ampere_;  // or newer
  detail::TensorDescriptor x_, y_;
  detail::FilterDescriptor weight_;
  detail::ChosenConvolution<cudnnConvolutionFwdAlgo_t> forward_;
  detail::ChosenConvolution<cudnnConvolutionBwdDataAlgo_t> backward_data_;
  detail::ChosenConvolution<cudnnConvolutionBwdFilterAlgo_t> backward_weights_;
};

}  // namespace tandem::cuda
