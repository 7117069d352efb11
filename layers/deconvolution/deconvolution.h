// Deconvolution: the transpose of a convolution, as in Caffe. Every input pixel adds its kernel to
// the output, at distances of the stride; padding is cut off. Weights are (inputs, outputs / group,
// kernel_h, kernel_w), and an optional bias.
#pragma once

#include "layers/convolution/convolution.h"

namespace tandem::layers {

struct DeconvolutionSettings : ConvolutionParameters {
  // Also throws Refusal if padding leaves no output.
  DeconvolutionSettings(const sdk::Attributes& attributes, const sdk::Shape& input)
      : ConvolutionParameters(attributes, input) {
    const sdk::Shape output = output_shape(input);
    if (output.h > 0 && output.w > 0) return;
    throw sdk::invalid("pad ", text_of(window.pad), " leaves no output: it would be ", output.h,
                       "x", output.w);
  }

  [[nodiscard]] sdk::Shape output_shape(const sdk::Shape& input) const {
    const Axes kernel = effective_kernel(window);
    return {input.n, outputs, (input.h - 1) * window.stride.h + kernel.h - 2 * window.pad.h,
            (input.w - 1) * window.stride.w + kernel.w - 2 * window.pad.w};
  }
  [[nodiscard]] sdk::Shape weight_shape(const sdk::Shape& input) const {
    return {input.c, outputs / group, window.kernel.h, window.kernel.w};
  }
  // The number of additions and multiplications of one pass.
  [[nodiscard]] double operations(const sdk::Shape& input) const {
    const sdk::Shape weight = weight_shape(input);
    return 2 * static_cast<double>(sdk::count(input)) *
           static_cast<double>(weight.c * weight.h * weight.w);
  }
};

struct Deconvolution : ConvolutionLike<DeconvolutionSettings> {
  const char* name() const override { return "Deconvolution"; }
  const char* help() const override { return "a convolution's transpose: learned upsampling"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
};

}  // namespace tandem::layers
