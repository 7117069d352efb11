// Convolution and Deconvolution on NVIDIA GPUs: a convolution by cuDNN or cuBLAS, or its transpose.
// The bias and a fused ReLU are part of cuDNN's kernel or one of our own. If there is a choice,
// tensors of 16 bits, and of float32 whose products may be TF32, are NHWC, which tensor cores
// prefer; others are NCHW.
#pragma once

#include <algorithm>
#include <optional>

#include "layers/bias/bias_cuda.h"
#include "layers/convolution/convolution.h"
#include "layers/convolution/fetched_filter_cuda.h"
#include "layers/convolution/folded_input_cuda.h"
#include "layers/deconvolution/deconvolution.h"
#include "plugins/cuda/chosen_convolution.h"

namespace tandem::layers {

// `image` is the tensor over which the kernel slides, `result` the one that a convolution makes
// from it: input and output of a convolution, output and input of a deconvolution.
template <class Settings>
cuda::ConvolutionShape convolution_shape(const sdk::Binding& binding, const Settings& settings,
                                         const tandem_shape& image, const tandem_shape& result) {
  const Window& w = settings.window;
  return {image,
          settings.weight_shape(binding.input(0).shape),
          result,
          settings.group,
          {w.stride.h, w.stride.w},
          {w.pad.h, w.pad.w},
          {w.dilation.h, w.dilation.w}};
}

// A tensor of one pixel is called NCHW, whatever the layout of the other one is.
inline cuda::ConvolutionKind convolution_kind(const sdk::Binding& binding, bool deconvolves) {
  const bool channels_last =
      binding.input(0).layout == TANDEM_NHWC || binding.output(0).layout == TANDEM_NHWC;
  return {binding.input(0).dtype, channels_last, binding.has(TANDEM_ALLOWS_TF32), deconvolves};
}

inline cuda::ConvolutionChoice convolution_choice(const sdk::Binding& binding) {
  return {binding.algorithm(), binding.has(TANDEM_MAY_MEASURE)};
}

// What cuDNN's kernel should do, too. Its engines for it that tensor cores run are for NHWC. With
// groups its model puts slow ones first (on an H100: AlexNet's conv4 0.72 ms instead of 0.54 and a
// pass of our own).
template <class Settings>
cuda::ConvolutionEpilogue convolution_epilogue(const sdk::Binding& binding,
                                               const Settings& settings,
                                               const cuda::ConvolutionKind& kind) {
  const bool adds_bias =
      settings.bias && kind.channels_last && !kind.deconvolves && settings.group == 1;
  return {adds_bias, adds_bias && binding.fuses_relu()};
}

inline sdk::LayoutOptions convolution_layouts(const sdk::Binding& binding) {
  const bool is_float32 = binding.input(0).dtype == TANDEM_FLOAT32;
  if (is_float32 && !binding.has(TANDEM_ALLOWS_TF32)) return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
  // Otherwise cuDNN would reorder, that is read and write, the tensors of each of the three passes.
  const int64_t elements = sdk::count(binding.input(0).shape) + sdk::count(binding.output(0).shape);
  const int64_t bytes = (is_float32 ? 4 : 2) * elements;
  return {{TANDEM_NHWC, TANDEM_NHWC, 0},
          {TANDEM_NCHW, TANDEM_NCHW, 3 * 2 * static_cast<double>(bytes)}};
}

// The three passes of cuDNN or cuBLAS, with the input and the weights in the form that they read.
// The scratch memory begins with the weights, or with their gradient; a folded input, the bias and
// the passes' own follow.
class FilterPasses {
 public:
  FilterPasses(const sdk::Call& call, const cuda::ConvolutionShape& shape,
               const cuda::ConvolutionKind& kind, bool backward_data, bool backward_weights,
               const cuda::ConvolutionChoice& how, cuda::ConvolutionEpilogue epilogue)
      : fold_(FoldedInput::of(shape, kind, backward_data)),
        filter_(shape.weight, kind, backward_weights),
        convolution_(call, fold_ ? fold_->shape() : shape, kind, backward_data, backward_weights,
                     how, epilogue) {
    // The bias is read as it is, or rounded to 16 bits by the code that rounds weights.
    if (convolution_.adds_bias()) bias_.emplace(cuda::bias_of(shape), kind, false);
  }

  [[nodiscard]] int64_t scratch_bytes() const {
    return work_begin() + convolution_.scratch_bytes();
  }
  // Whether the forward pass adds the bias and applies a fused ReLU.
  [[nodiscard]] bool adds_bias() const { return bias_.has_value(); }
  [[nodiscard]] std::string algorithm() const { return convolution_.algorithm(); }
  [[nodiscard]] bool is_measured() const { return convolution_.is_measured(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass, const void* x, void* y) const {
    const void *input = fetch_input(call, pass, x), *weight = fetch_weight(call, pass);
    convolution_.forward(call, input, weight, fetch_bias(call, pass), y, work(pass));
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass, const void* dy,
                     void* dx) const {
    convolution_.backward_data(call, fetch_weight(call, pass), dy, dx, work(pass));
  }
  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass, const void* x,
                        const void* dy) const {
    // cuDNN overwrites, so it gets the gradient itself only where that is what the pass wants.
    const bool is_final = !fold_ && !filter_.is_copy() && !pass.accumulate();
    float* gradient = pass.weight_gradient(0).get();
    void* result = is_final ? gradient : pass.raw.scratch;
    convolution_.backward_weights(call, fetch_input(call, pass, x), dy, result, work(pass));
    if (is_final) return;
    if (fold_) return fold_->take_gradient(call, result, gradient, pass.accumulate());
    filter_.take_gradient(call, result, gradient, pass.accumulate());
  }

 private:
  [[nodiscard]] int64_t input_begin() const {
    return fold_ ? fold_->filter_bytes() : filter_.bytes();
  }
  [[nodiscard]] int64_t bias_begin() const {
    return input_begin() + (fold_ ? fold_->input_bytes() : 0);
  }
  [[nodiscard]] int64_t work_begin() const { return bias_begin() + (bias_ ? bias_->bytes() : 0); }
  [[nodiscard]] void* work(const sdk::DevicePass& pass) const {
    return pass.scratch<char>().get() + work_begin();
  }
  const void* fetch_input(const sdk::Call& call, const sdk::DevicePass& pass, const void* x) const {
    if (!fold_) return x;
    void* folded = pass.scratch<char>().get() + input_begin();
    fold_->fold_input(call, x, folded);
    return folded;
  }
  const void* fetch_weight(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const float* weight = pass.weight(0).get();
    if (!fold_) return filter_.fetch(call, weight, pass.raw.scratch);
    fold_->fold_filter(call, weight, pass.raw.scratch);
    return pass.raw.scratch;
  }

  const void* fetch_bias(const sdk::Call& call, const sdk::DevicePass& pass) const {
    if (!bias_) return nullptr;
    return bias_->fetch(call, pass.weight(1).get(), pass.scratch<char>().get() + bias_begin());
  }

  std::optional<FoldedInput> fold_;
  FetchedFilter filter_;
  std::optional<FetchedFilter> bias_;  // that the convolution adds
  cuda::ChosenConvolution convolution_;
};

// What both layers add to the convolution: the bias of each output channel, and a fused ReLU, which
// the convolution may do itself; and the gradient of the bias.
class ConvolutionBias {
 public:
  ConvolutionBias(const sdk::Binding& binding, bool present)
      : broadcast_(binding.output(0), {1, 1}),
        dtype_(binding.output(0).dtype),
        present_(present),
        fuses_relu_(binding.fuses_relu()) {}

  [[nodiscard]] int64_t scratch_bytes() const {
    return present_ ? sums_over(broadcast_).scratch_bytes() : 0;
  }
  void add(const sdk::Call& call, const sdk::DevicePass& pass) const {
    if (!present_ && !fuses_relu_) return;
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      T* y = pass.output<T>(0).get();
      if (present_) {
        const float* bias = pass.weight(1).get();
        apply_values<T>(call, broadcast_, y, y, bias, bias, y, AddedBias(), fuses_relu_);
      } else {
        const int64_t elements = broadcast_.elements();
        cuda::for_each(call, elements, ReluOfRows<T>{elements, elements, y});
      }
    });
  }
  void gradient(const sdk::Call& call, const sdk::DevicePass& pass) const {
    if (!present_ || pass.weight_gradient(1).get() == nullptr) return;
    cuda::with_elements(dtype_, [&](auto element) {
      const auto* dy = pass.output_gradient<decltype(element)>(0).get();
      sum_values(call, broadcast_, dy, dy, SecondOf(), pass.scratch<double>().get(),
                 pass.weight_gradient(1).get(), pass.accumulate());
    });
  }

 private:
  Broadcast broadcast_;
  int32_t dtype_;
  bool present_, fuses_relu_;
};

// `transposed`: a deconvolution. Its forward pass is the convolution's backward pass by data, and
// so on.
template <class Settings, bool transposed>
class ConvolutionLikeCuda : public sdk::Needs {
 public:
  ConvolutionLikeCuda(const sdk::Binding& binding, const sdk::Call& call)
      : ConvolutionLikeCuda(binding, call, Settings(binding.attributes, binding.input(0).shape)) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint32_t fused_activations = relu_only;

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return convolution_layouts(binding);
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    apply<transposed>(call, pass, pass.raw.inputs[0], pass.raw.outputs[0]);
    if (!passes_.adds_bias()) bias_.add(call, pass);
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    apply<!transposed>(call, pass, pass.raw.output_gradients[0], pass.raw.input_gradients[0]);
  }
  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const void *x = pass.raw.inputs[0], *dy = pass.raw.output_gradients[0];
    passes_.backward_weights(call, pass, transposed ? dy : x, transposed ? x : dy);
    bias_.gradient(call, pass);
  }

 private:
  ConvolutionLikeCuda(const sdk::Binding& binding, const sdk::Call& call, const Settings& settings)
      : passes_(call,
                convolution_shape(binding, settings, (transposed ? output : input)(binding),
                                  (transposed ? input : output)(binding)),
                convolution_kind(binding, transposed),
                transposed || binding.has(TANDEM_WANTS_BACKWARD_DATA),
                binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS), convolution_choice(binding),
                convolution_epilogue(binding, settings, convolution_kind(binding, transposed))),
        bias_(binding, settings.bias) {
    scratch_bytes = std::max(passes_.scratch_bytes(), bias_.scratch_bytes());
    algorithm = passes_.algorithm();
    is_measured = passes_.is_measured();
  }
  static const tandem_shape& input(const sdk::Binding& binding) { return binding.input(0).shape; }
  static const tandem_shape& output(const sdk::Binding& binding) { return binding.output(0).shape; }

  template <bool by_data>
  void apply(const sdk::Call& call, const sdk::DevicePass& pass, const void* from, void* to) const {
    if constexpr (by_data) {
      passes_.backward_data(call, pass, from, to);
    } else {
      passes_.forward(call, pass, from, to);
    }
  }

  FilterPasses passes_;
  ConvolutionBias bias_;
};

using ConvolutionCuda = ConvolutionLikeCuda<ConvolutionSettings, false>;
using DeconvolutionCuda = ConvolutionLikeCuda<DeconvolutionSettings, true>;

}  // namespace tandem::layers
