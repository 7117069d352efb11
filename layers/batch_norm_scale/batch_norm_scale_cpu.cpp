// BatchNormScale on the cpu. The forward pass reads x for the statistics and once more to write y;
// the backward pass reads x and dy for the sums and once more to write dx. The sums are the
// gradients of the factors and biases, too. With a fused ReLU the backward pass computes y once
// more instead of reading it. A sum with another layer's output can be fused, too.
#include "layers/batch_norm_scale/batch_norm_scale.h"

#include <algorithm>

#include "layers/batch_norm/norm_kernel_cpu.h"
#include "layers/batch_norm_scale/channel_passes.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class BatchNormScaleCpu : public NormKernel {
 public:
  static constexpr uint32_t fused_gradients = relu_only;
  static constexpr bool fuses_sum = true;
  BatchNormScaleCpu(const Binding& binding, const Call&)
      : NormKernel(binding, 4),
        kernels_(channel_kernels()),
        // The gradient of a ReLU behind a sum is not applied here.
        applies_relu_gradient_(fuses_relu_ && !binding.fuses_sum()) {
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA | TANDEM_WANTS_BACKWARD_WEIGHTS)) {
      saved_bytes = (3 * channels_.count + 1) * 4;
    }
  }

  void forward_statistics(const Call& call, const Pass& pass) const {
    moments_of(call, pass, pass.statistics<double>());
  }

  void forward(const Call& call, const Pass& pass) const {
    float* factor = values(pass, 0);
    const ChannelNorm norm = norm_of(saved_bytes > 0 ? pass.saved() : values(pass, 1));
    if (kept_) {
      norm.set_kept(pass, channels_.count, eps_);
    } else {
      const double* memory = pass.statistics<double>();
      if (per_device_) memory = moments_of(call, pass, local(pass));
      const float each = set_norm(memory, pass, norm);
      if (saved_bytes > 0) pass.saved()[3 * channels_.count] = each;
    }
    set_factors(pass, norm, factor);
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      normalize<T>(call, pass.input<T>(0), pass.addend<T>(), pass.output<T>(0),
                   {norm.high, norm.low, factor, pass.weight(BatchNormScale::biases)}, fuses_relu_);
    });
  }

  void backward_statistics(const Call& call, const Pass& pass) const {
    sums_of_gradients(call, pass, pass.statistics());
  }

  // dx = (dy - mean(dy) - x' * mean(dy * x')) * weight / sqrt(variance + eps), x' normalized
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { backward_of<decltype(element)>(call, pass); });
  }

  void backward_weights(const Call& call, const Pass& pass) const {
    const int64_t c = channels_.count;
    const float* sums = sums_for(call, pass);
    const float share =
        has_own_sums() ? 1.0F
                       : BatchNormScale::share_of_rows(
                             pass.saved()[3 * c],
                             static_cast<float>(1 / static_cast<double>(channels_.per_channel())));
    const auto give = [&](float* target, const float* source) {
      if (target == nullptr) return;
      for (int64_t i = 0; i < c; ++i) {
        target[i] = (pass.accumulate() ? target[i] : 0.0F) + share * source[i];
      }
    };
    give(pass.weight_gradient(BatchNormScale::biases), sums);
    give(pass.weight_gradient(BatchNormScale::factors), sums + c);
  }

 private:
  template <class T>
  void backward_of(const Call& call, const Pass& pass) const {
    const int64_t c = channels_.count;
    const ChannelNorm norm = norm_of(pass.saved());
    const T* dy = pass.output_gradient<T>(0);
    T* dx = pass.input_gradient<T>(0);
    // Before the values of this pass: sums_for() has them in other scratch.
    const float* sums = kept_ ? nullptr : sums_for(call, pass);
    float *factor = values(pass, 0), *mean = values(pass, 1), *slope = values(pass, 2);
    set_factors(pass, norm, factor);
    const float each = kept_ ? 0 : pass.saved()[3 * c];
    for (int64_t i = 0; i < c; ++i) {
      mean[i] = kept_ ? 0 : sums[i] * each;
      slope[i] = kept_ ? 0 : sums[c + i] * each * norm.scale[i];
    }
    if (kept_ && !applies_relu_gradient_) {
      return normalize<T>(call, dy, nullptr, dx, {mean, mean, factor, mean}, false);
    }
    const T* x = pass.input<T>(0);
    const float* bias = pass.weight(BatchNormScale::biases);
    const NormValues values{norm.high, norm.low, factor, bias, mean, slope};
    channels_.for_units(call.threads, [&](int64_t begin, int64_t end) {
      kernels_.of(T{}).gradient(channels_, begin, end, x, dy, dx, values, applies_relu_gradient_);
    });
  }

  template <class T>
  void normalize(const Call& call, const T* x, const T* addend, T* y, const NormValues& values,
                 bool fuses_relu) const {
    channels_.for_units(call.threads, [&](int64_t begin, int64_t end) {
      kernels_.of(T{}).normalize(channels_, begin, end, x, addend, y, values, fuses_relu);
    });
  }

  // Saved memory: high, low and scale of ChannelNorm, then 1 / the number of values of a channel in
  // the batch.
  [[nodiscard]] ChannelNorm norm_of(float* memory) const {
    return {memory, memory + channels_.count, memory + 2 * channels_.count};
  }
  void set_factors(const Pass& pass, const ChannelNorm& norm, float* factor) const {
    const float* weight = pass.weight(BatchNormScale::factors);
    for (int64_t c = 0; c < channels_.count; ++c) factor[c] = weight[c] * norm.scale[c];
  }

  // Returns `target`.
  const double* moments_of(const Call& call, const Pass& pass, double* target) const {
    float* about = values(pass, 0);
    double* sums = pass.scratch<double>();
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0);
      for (int64_t c = 0; c < channels_.count; ++c) about[c] = load(x[channels_.first(c)]);
      sums_.sum_units(call.threads, sums,
                      [&](int64_t begin, int64_t end, double* first, double* second) {
                        kernels_.of(T{}).moments(channels_, begin, end, x, about, first, second);
                      });
    });
    moments_of_sums(sums, about, channels_.count, channels_.per_channel(), target);
    return target;
  }

  // Whether the sums of the backward pass are those of the rows, which no statistics pass gives.
  [[nodiscard]] bool has_own_sums() const { return kept_ || per_device_; }

  // The sums of dy, then those of dy times the normalized x.
  const float* sums_for(const Call& call, const Pass& pass) const {
    return has_own_sums() ? sums_of_gradients(call, pass, local<float>(pass)) : pass.statistics();
  }
  // Returns `target`.
  const float* sums_of_gradients(const Call& call, const Pass& pass, float* target) const {
    const int64_t c = channels_.count;
    const ChannelNorm norm = norm_of(pass.saved());
    double* sums = pass.scratch<double>();
    float* factor = this->values(pass, 0);
    set_factors(pass, norm, factor);
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T *x = pass.input<T>(0), *dy = pass.output_gradient<T>(0);
      const NormValues values{norm.high, norm.low, factor, pass.weight(BatchNormScale::biases)};
      sums_.sum_units(call.threads, sums,
                      [&](int64_t begin, int64_t end, double* first, double* second) {
                        kernels_.of(T{}).products(channels_, begin, end, x, dy, values,
                                                  applies_relu_gradient_, first, second);
                      });
    });
    for (int64_t i = 0; i < c; ++i) {
      target[i] = static_cast<float>(sums[i]);
      target[c + i] = static_cast<float>(sums[c + i] * static_cast<double>(norm.scale[i]));
    }
    return target;
  }

  const ChannelKernels& kernels_;
  bool applies_relu_gradient_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "batch_norm_scale", "1.0")
      .layer<BatchNormScale>()
      .kernel<BatchNormScale, BatchNormScaleCpu>("cpu")
      .table();
}
