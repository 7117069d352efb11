// Convolution and Deconvolution where oneDNN has only reference code: a kernel of Tandem's own for
// every shape (layers/common/channel_convolution.h), float32.
#pragma once

#include <memory>

#include "layers/common/broadcast_cpu.h"
#include "layers/common/channel_convolution.h"
#include "plugins/cpu/onednn.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// Settings: the layer's. A transposed convolution's forward pass is the backward pass of one from
// its outputs to its inputs.
template <class Settings, bool transposed>
class OwnConvolution : public sdk::Needs {
 public:
  // Null where oneDNN's kernels are used: by instruction set and dtype.
  static std::unique_ptr<OwnConvolution> make(const sdk::Binding& binding, const sdk::Call& call) {
    if (!cpu::has_own_kernels_only(binding.input(0).dtype)) return nullptr;
    return std::unique_ptr<OwnConvolution>(new OwnConvolution(binding, call));
  }
  static sdk::LayoutOptions layouts(const sdk::Binding& binding);

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    const float* bias = bias_ ? pass.weight(1).data() : nullptr;
    const float *x = pass.input(0), *weights = pass.weight(0);
    transposed
        ? convolution_.backward(call.threads, x, weights, bias, pass.output(0), pass.scratch())
        : convolution_.forward(call.threads, x, weights, bias, pass.output(0), pass.scratch());
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float *dy = pass.output_gradient(0), *weights = pass.weight(0);
    float* dx = pass.input_gradient(0);
    float* scratch = pass.scratch();
    transposed ? convolution_.forward(call.threads, dy, weights, nullptr, dx, scratch)
               : convolution_.backward(call.threads, dy, weights, nullptr, dx, scratch);
  }
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    const float *x = pass.input(0), *dy = pass.output_gradient(0);
    convolution_.correlate(call.threads, transposed ? dy : x, transposed ? x : dy,
                           pass.accumulate(), pass.weight_gradient(0), pass.scratch());
    if (!bias_) return;
    sum_values(
        call.threads, per_channel_, dy, dy, [](float gradient, float) { return gradient; },
        pass.scratch<double>(), pass.weight_gradient(1).data(), pass.accumulate());
  }

 private:
  OwnConvolution(const sdk::Binding& binding, const sdk::Call& call)
      : OwnConvolution(binding, call, Settings(binding.attributes, binding.input(0).shape)) {}
  OwnConvolution(const sdk::Binding& binding, const sdk::Call& call, const Settings& settings)
      : bias_(settings.bias),
        per_channel_(binding.output(0), CoveredAxes{.first = 1, .count = 1}),
        convolution_(transposed ? binding.output(0) : binding.input(0),
                     transposed ? binding.input(0) : binding.output(0), settings.window,
                     settings.group, passes_of(binding), call.threads) {
    scratch_bytes = convolution_.scratch_bytes();
    if (bias_ && binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) {
      scratch_bytes = std::max(scratch_bytes, sum_scratch_bytes(per_channel_));
    }
    algorithm = convolution_.name();
  }
  static ChannelConvolution::Passes passes_of(const sdk::Binding& binding) {
    const bool data = binding.has(TANDEM_WANTS_BACKWARD_DATA);
    return {!transposed || data, transposed || data, binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)};
  }

  bool bias_;
  Broadcast per_channel_;  // of the output
  ChannelConvolution convolution_;
};

// Copies are made in any layout. Those of few channels are read well from planes, too; those of
// many would be read and written value by value.
template <class Settings, bool transposed>
sdk::LayoutOptions OwnConvolution<Settings, transposed>::layouts(const sdk::Binding& binding) {
  const sdk::Shape& in = binding.input(0).shape;
  const Settings settings(binding.attributes, in);
  const int32_t blocked = cpu::blocked_layout(TANDEM_FLOAT32);
  const int64_t block = cpu::block_of(blocked, 0);
  // Of depthwise convolutions blocks hold groups.
  const bool is_depthwise = settings.group == in.c && settings.group == settings.outputs;
  const int64_t groups = is_depthwise ? 1 : settings.group;
  const bool blocks_in = in.c / groups % block == 0;
  const bool blocks_out = settings.outputs / groups % block == 0;
  constexpr int64_t few_channels = 4;
  const double from = 4 * static_cast<double>(sdk::count(in)),
               to = 4 * static_cast<double>(sdk::count(settings.output_shape(in)));
  sdk::LayoutOptions options;
  if (blocks_in && blocks_out) options.push_back({blocked, blocked, 0});
  if (in.c <= few_channels && blocks_out) options.push_back({TANDEM_NCHW, blocked, 0});
  options.push_back({TANDEM_NHWC, TANDEM_NHWC, 0});
  if (in.c <= few_channels) options.push_back({TANDEM_NCHW, TANDEM_NHWC, 0});
  options.push_back({TANDEM_NCHW, TANDEM_NCHW, 2 * (from + to)});
  return options;
}

}  // namespace tandem::layers
