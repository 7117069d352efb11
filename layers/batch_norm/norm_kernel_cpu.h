// What the cpu kernels of BatchNorm and BatchNormScale share: the parameters, the statistics of the
// forward pass, and the places in scratch memory. A kernel reads the tensors.
#pragma once

#include <cstdint>

#include "layers/batch_norm/channels.h"
#include "layers/batch_norm/moments_cpu.h"
#include "plugins/cpu/fused_relu.h"

namespace tandem::layers {

class NormKernel : public sdk::Needs {
 public:
  static constexpr uint32_t dtypes = cpu::float32_and_bfloat16;
  static constexpr uint32_t fused_activations = sdk::relu_only;
  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return sdk::any_layout(binding.input(0).shape.c);
  }

  void merge_forward_statistics(const sdk::Call&, float* target, const float* const* sources,
                                uint32_t source_count) const {
    merge_moments(channels_.count, target, sources, source_count);
  }

 protected:
  // `arrays`: of a value for each channel, in scratch memory.
  NormKernel(const sdk::Binding& binding, int64_t arrays)
      : dtype_(binding.input(0).dtype),
        channels_(binding.input(0)),
        sums_(channels_),
        training_(binding.training()),
        kept_(BatchNorm::uses_kept_statistics(binding.attributes, training_)),
        per_device_(!kept_ && binding.attributes.boolean("per_device")),
        fuses_relu_(binding.fuses_relu()),
        eps_(binding.attributes.number("eps")),
        fraction_(static_cast<float>(binding.attributes.number("moving_average_fraction"))) {
    const int64_t c = channels_.count;
    const int64_t doubles = 1 + 2 * c + sums_.scratch();
    scratch_bytes = doubles * 8 + arrays * c * 4;
    if (!kept_ && !per_device_) statistics = BatchNorm::forward_statistics(c);
  }

  // Scratch: the two sums of every part, then statistics or sums of the rows, then the arrays.
  template <class T = double>
  T* local(const sdk::Pass& pass) const {
    return reinterpret_cast<T*>(pass.scratch<double>() + sums_.scratch());
  }
  float* values(const sdk::Pass& pass, int64_t index) const {
    return reinterpret_cast<float*>(local(pass) + 1 + 2 * channels_.count) +
           index * channels_.count;
  }

  // Of the statistics, which the running ones follow in training. Returns 1 / the number of values
  // of a channel in the batch.
  float set_norm(const double* memory, const sdk::Pass& pass, const ChannelNorm& norm) const {
    const ChannelMoments<const double> moments(memory, channels_.count);
    norm.set(moments, channels_.count, eps_);
    if (training_) keep_moments(moments, channels_.count, fraction_, pass);
    return static_cast<float>(1 / *moments.count);
  }

  int32_t dtype_;
  Channels channels_;
  ChannelSums sums_;
  bool training_, kept_, per_device_, fuses_relu_;
  double eps_;
  float fraction_;
};

}  // namespace tandem::layers
