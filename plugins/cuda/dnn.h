// Convolutions by cuDNN: the three passes of y = w * x. This is cuDNN's older interface
// (cudnnConvolutionForward and related functions), which version 9 still has. Unlike the engines of
// the graph interface, each of its algorithms is documented as deterministic or not and supports
// any stride, padding, dilation and group. By default the algorithm is the fastest by cuDNN's own
// model of the GPU. The same shapes on the same GPU and library give the same algorithm, so that a
// repeated or resumed run has the same bits. If the user allows it, the algorithm is the fastest
// measured one, which the host records and requests again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/descriptors.h"
#include "plugins/cuda/dnn_choice.h"

namespace tandem::cuda {

class Convolution : detail::AlgorithmChooser {
 public:
  // Throws Refusal if this GPU does not support the kind, or does not have the recorded algorithms.
  Convolution(const sdk::Call& call, const ConvolutionShape& shape, const ConvolutionKind& kind,
              bool backward_data, bool backward_weights, const ConvolutionChoice& how)
      : AlgorithmChooser(call, shape, kind, how) {
    require_computable(kind.dtype, kind.allows_tf32);
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
    has_chosen();
  }

  // The largest scratch size of the chosen algorithms, and their numbers for people.
  [[nodiscard]] int64_t scratch_bytes() const {
    return static_cast<int64_t>(
        std::max({forward_.bytes, backward_data_.bytes, backward_weights_.bytes}));
  }
  [[nodiscard]] std::string algorithm() const {
    ConvolutionAlgorithms algorithms;
    algorithms[layer_pass(0)] = of(forward_);
    if (backward_data_.is_wanted) algorithms[layer_pass(1)] = of(backward_data_);
    if (backward_weights_.is_wanted) algorithms[layer_pass(2)] = of(backward_weights_);
    return text(algorithms);
  }

  // Tensors and weights have the kind's dtype.
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
  // cuDNN lists an algorithm once for each kind of arithmetic.
  static constexpr size_t kinds = 3;

  void choose_forward(cudnnHandle_t handle) {
    using Answer = cudnnConvolutionFwdAlgoPerf_t;
    constexpr size_t most = kinds * CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    const cudnnConvolutionDescriptor_t window = forward_.window.get();
    const auto bytes_of = [&](auto algorithm, size_t* bytes) {
      return cudnnGetConvolutionForwardWorkspaceSize(handle, x_.get(), weight_.get(), window,
                                                     y_.get(), algorithm, bytes);
    };
    const auto measure = [&](const detail::MeasuringMemory& m) {
      return measured<Answer, most>(
          "cudnnFindConvolutionForwardAlgorithmEx", [&](Answer* answers, int room, int* found) {
            return cudnnFindConvolutionForwardAlgorithmEx(
                handle, x_.get(), m.x(), weight_.get(), m.weight(), window, y_.get(), m.y(), room,
                found, answers, m.scratch(), m.scratch_bytes());
          });
    };
    if (chosen_already(forward_, 0, {}, measure, bytes_of)) return;
    int found = 0;
    std::array<Answer, most> all{};
    const cudnnStatus_t status =
        cudnnGetConvolutionForwardAlgorithm_v7(handle, x_.get(), weight_.get(), window, y_.get(),
                                               static_cast<int>(all.size()), &found, all.data());
    choose(forward_, all, found_by(status, found, "cudnnGetConvolutionForwardAlgorithm_v7"),
           {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
           0, bytes_of);
  }
  void choose_backward_data(cudnnHandle_t handle) {
    using Answer = cudnnConvolutionBwdDataAlgoPerf_t;
    constexpr size_t most = kinds * CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
    const cudnnConvolutionDescriptor_t window = backward_data_.window.get();
    const auto bytes_of = [&](auto algorithm, size_t* bytes) {
      return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, weight_.get(), y_.get(), window,
                                                          x_.get(), algorithm, bytes);
    };
    const auto measure = [&](const detail::MeasuringMemory& m) {
      return measured<Answer, most>("cudnnFindConvolutionBackwardDataAlgorithmEx",
                                    [&](Answer* answers, int room, int* found) {
                                      return cudnnFindConvolutionBackwardDataAlgorithmEx(
                                          handle, weight_.get(), m.weight(), y_.get(), m.y(),
                                          window, x_.get(), m.x(), room, found, answers,
                                          m.scratch(), m.scratch_bytes());
                                    });
    };
    if (chosen_already(backward_data_, 1, {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0}, measure, bytes_of)) {
      return;
    }
    int found = 0;
    std::array<Answer, most> all{};
    const cudnnStatus_t status = cudnnGetConvolutionBackwardDataAlgorithm_v7(
        handle, weight_.get(), y_.get(), window, x_.get(), static_cast<int>(all.size()), &found,
        all.data());
    choose(backward_data_, all,
           found_by(status, found, "cudnnGetConvolutionBackwardDataAlgorithm_v7"),
           {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1}, 1, bytes_of);
  }
  void choose_backward_weights(cudnnHandle_t handle) {
    using Answer = cudnnConvolutionBwdFilterAlgoPerf_t;
    constexpr size_t most = kinds * CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
    const cudnnConvolutionDescriptor_t window = backward_weights_.window.get();
    const auto bytes_of = [&](auto algorithm, size_t* bytes) {
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x_.get(), y_.get(), window,
                                                            weight_.get(), algorithm, bytes);
    };
    const auto measure = [&](const detail::MeasuringMemory& m) {
      return measured<Answer, most>("cudnnFindConvolutionBackwardFilterAlgorithmEx",
                                    [&](Answer* answers, int room, int* found) {
                                      return cudnnFindConvolutionBackwardFilterAlgorithmEx(
                                          handle, x_.get(), m.x(), y_.get(), m.y(), window,
                                          weight_.get(), m.weight(), room, found, answers,
                                          m.scratch(), m.scratch_bytes());
                                    });
    };
    if (chosen_already(backward_weights_, 2,
                       {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3},
                       measure, bytes_of)) {
      return;
    }
    int found = 0;
    std::array<Answer, most> all{};
    const cudnnStatus_t status = cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle, x_.get(), y_.get(), window, weight_.get(), static_cast<int>(all.size()), &found,
        all.data());
    choose(backward_weights_, all,
           found_by(status, found, "cudnnGetConvolutionBackwardFilterAlgorithm_v7"),
           {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}, 2, bytes_of);
  }

  detail::TensorDescriptor x_, y_;
  detail::FilterDescriptor weight_;
  detail::ChosenConvolution<cudnnConvolutionFwdAlgo_t> forward_;
  detail::ChosenConvolution<cudnnConvolutionBwdDataAlgo_t> backward_data_;
  detail::ChosenConvolution<cudnnConvolutionBwdFilterAlgo_t> backward_weights_;
};

}  // namespace tandem::cuda
