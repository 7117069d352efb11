// Convolution and Deconvolution on NVIDIA GPUs: cuDNN's convolution one way and the other way
// round, and a bias by our own kernels.
#pragma once

#include <algorithm>

#include "layers/bias/bias_cuda.h"
#include "layers/convolution/convolution.h"
#include "layers/deconvolution/deconvolution.h"
#include "plugins/cuda/dnn.h"

namespace tandem::layers {

// `image` is what the kernels slide over, `result` what they make of it: input and output of a
// convolution, output and input of a deconvolution.
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

// What both have beside the convolution itself: the bias of each output channel.
class ConvolutionBias {
 public:
  ConvolutionBias(const sdk::Binding& binding, bool present)
      : spread_(binding.output(0), {1, 1}), present_(present) {}

  [[nodiscard]] int64_t scratch_bytes() const {
    return present_ ? sums_over(spread_).scratch_bytes() : 0;
  }
  void add(const sdk::Call& call, const sdk::Pass& pass) const {
    if (!present_) return;
    float* y = pass.output(0);
    const float* bias = pass.weight(1);
    apply_values(call, spread_, y, y, bias, bias, y, AddedBias());
  }
  void gradient(const sdk::Call& call, const sdk::Pass& pass) const {
    if (!present_ || pass.weight_gradient(1) == nullptr) return;
    const float* dy = pass.output_gradient(0);
    sum_values(call, spread_, dy, dy, SecondOf(), pass.scratch<double>(), pass.weight_gradient(1),
               pass.accumulate());
  }

 private:
  Spread spread_;
  bool present_;
};

class ConvolutionCuda : public sdk::Needs {
 public:
  ConvolutionCuda(const sdk::Binding& binding, const sdk::Call& call)
      : ConvolutionCuda(binding, call,
                        ConvolutionSettings(binding.attributes, binding.input(0).shape)) {}

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    convolution_.forward(call, pass.input(0), pass.weight(0), pass.output(0), pass.raw.scratch);
    bias_.add(call, pass);
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    convolution_.backward_data(call, pass.weight(0), pass.output_gradient(0),
                               pass.input_gradient(0), pass.raw.scratch);
  }
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    convolution_.backward_weights(call, pass.input(0), pass.output_gradient(0),
                                  pass.weight_gradient(0), pass.accumulate(), pass.raw.scratch);
    bias_.gradient(call, pass);
  }

 private:
  ConvolutionCuda(const sdk::Binding& binding, const sdk::Call& call,
                  const ConvolutionSettings& settings)
      : convolution_(
            call,
            convolution_shape(binding, settings, binding.input(0).shape, binding.output(0).shape),
            binding.has(TANDEM_WANTS_BACKWARD_DATA), binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)),
        bias_(binding, settings.bias) {
    scratch_bytes = std::max(convolution_.scratch_bytes(), bias_.scratch_bytes());
    algorithm = convolution_.algorithm();
  }

  cuda::Convolution convolution_;
  ConvolutionBias bias_;
};

// Its forward pass is the convolution's backward data, and so on.
class DeconvolutionCuda : public sdk::Needs {
 public:
  DeconvolutionCuda(const sdk::Binding& binding, const sdk::Call& call)
      : DeconvolutionCuda(binding, call,
                          DeconvolutionSettings(binding.attributes, binding.input(0).shape)) {}

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    convolution_.backward_data(call, pass.weight(0), pass.input(0), pass.output(0),
                               pass.raw.scratch);
    bias_.add(call, pass);
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    convolution_.forward(call, pass.output_gradient(0), pass.weight(0), pass.input_gradient(0),
                         pass.raw.scratch);
  }
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    convolution_.backward_weights(call, pass.output_gradient(0), pass.input(0),
                                  pass.weight_gradient(0), pass.accumulate(), pass.raw.scratch);
    bias_.gradient(call, pass);
  }

 private:
  DeconvolutionCuda(const sdk::Binding& binding, const sdk::Call& call,
                    const DeconvolutionSettings& settings)
      : convolution_(
            call,
            convolution_shape(binding, settings, binding.output(0).shape, binding.input(0).shape),
            true, binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)),
        bias_(binding, settings.bias) {
    scratch_bytes = std::max(convolution_.scratch_bytes(), bias_.scratch_bytes());
    algorithm = convolution_.algorithm();
  }

  cuda::Convolution convolution_;
  ConvolutionBias bias_;
};

}  // namespace tandem::layers
