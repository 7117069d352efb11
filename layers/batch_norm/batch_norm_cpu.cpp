// BatchNorm on the cpu. The backward pass needs only y and 1 / sqrt(variance + eps), so the input's
// memory may be reused.
#include "layers/batch_norm/batch_norm.h"

#include <algorithm>

#include "layers/batch_norm/norm_kernel_cpu.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

// y = ((x - high) - low) * scale with the coefficients of the channel; y may be x. The results are
// local until they are stored, so that the compiler does not have to assume that stores change the
// values to be loaded next.
template <class T, bool fuses_relu>
struct Normalize {
  const T* x;
  T* y;
  const float *high, *low, *scale;

  template <int Lanes>
  void add(int64_t offset, int64_t rows, int64_t stride, int64_t channel, int64_t step) const {
    float a[Lanes], b[Lanes], s[Lanes], value[Lanes];
    for (int k = 0; k < Lanes; ++k) {
      a[k] = high[channel + k * step];
      b[k] = low[channel + k * step];
      s[k] = scale[channel + k * step];
    }
    for (int64_t i = 0; i < rows; ++i) {
      const T* from = x + offset + i * stride;
      T* to = y + offset + i * stride;
      for (int k = 0; k < Lanes; ++k) value[k] = ((load(from[k]) - a[k]) - b[k]) * s[k];
      if constexpr (fuses_relu) {
        for (int k = 0; k < Lanes; ++k) value[k] = rounded_relu<T>(value[k]);
      }
      for (int k = 0; k < Lanes; ++k) store(value[k], to[k]);
    }
  }
};

// dx = ((dy - mean) - y * slope) * scale; dx may be dy.
template <class T>
struct Backward {
  const T *dy, *y;
  T* dx;
  const float *mean, *slope, *scale;

  template <int Lanes>
  void add(int64_t offset, int64_t rows, int64_t stride, int64_t channel, int64_t step) const {
    float a[Lanes], b[Lanes], s[Lanes], value[Lanes];
    for (int k = 0; k < Lanes; ++k) {
      a[k] = mean[channel + k * step];
      b[k] = slope[channel + k * step];
      s[k] = scale[channel + k * step];
    }
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = offset + i * stride;
      for (int k = 0; k < Lanes; ++k) {
        value[k] = ((load(dy[at + k]) - a[k]) - load(y[at + k]) * b[k]) * s[k];
      }
      for (int k = 0; k < Lanes; ++k) store(value[k], dx[at + k]);
    }
  }
};

class BatchNormCpu : public NormKernel {
 public:
  BatchNormCpu(const Binding& binding, const Call&) : NormKernel(binding, 3) {
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = (channels_.count + 1) * 4;
  }

  void forward_statistics(const Call& call, const Pass& pass) const {
    moments_of(call, pass, pass.statistics<double>());
  }

  void forward(const Call& call, const Pass& pass) const {
    float* high = values(pass, 0);
    float *low = high + channels_.count, *scale = low + channels_.count;
    const ChannelNorm norm{high, low, scale};
    if (kept_) {
      norm.set_kept(pass, channels_.count, eps_);
    } else {
      const double* memory = pass.statistics<double>();
      if (per_device_) memory = moments_of(call, pass, local(pass));
      const float each = set_norm(memory, pass, norm);
      if (saved_bytes > 0) pass.saved()[channels_.count] = each;
    }
    if (saved_bytes > 0) std::copy_n(scale, channels_.count, pass.saved());
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0);
      T* y = pass.output<T>(0);
      if (fuses_relu_) {
        channels_.visit_all(call.threads, Normalize<T, true>{x, y, high, low, scale});
      } else {
        channels_.visit_all(call.threads, Normalize<T, false>{x, y, high, low, scale});
      }
    });
  }

  void backward_statistics(const Call& call, const Pass& pass) const {
    sums_of_gradients(call, pass, pass.statistics());
  }

  // dx = (dy - mean(dy) - y * mean(dy * y)) / sqrt(variance + eps)
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { backward_of<decltype(element)>(call, pass); });
  }

 private:
  template <class T>
  void backward_of(const Call& call, const Pass& pass) const {
    const float* scale = pass.saved();
    const T* dy = pass.output_gradient<T>(0);
    T* dx = pass.input_gradient<T>(0);
    if (kept_) {
      float* zero = values(pass, 0);
      std::fill_n(zero, channels_.count, 0.0F);
      channels_.visit_all(call.threads, Normalize<T, false>{dy, dx, zero, zero, scale});
      return;
    }
    const float* sums =
        per_device_ ? sums_of_gradients(call, pass, local<float>(pass)) : pass.statistics();
    float* mean = values(pass, 0);
    float* product = mean + channels_.count;
    const float factor = scale[channels_.count];
    for (int64_t c = 0; c < channels_.count; ++c) {
      mean[c] = sums[c] * factor;
      product[c] = sums[channels_.count + c] * factor;
    }
    channels_.visit_all(call.threads,
                        Backward<T>{dy, pass.output<T>(0).data(), dx, mean, product, scale});
  }

  // Returns `target`.
  const double* moments_of(const Call& call, const Pass& pass, double* target) const {
    const int64_t count = channels_.count;
    float* about = values(pass, 0);
    double* sums = pass.scratch<double>();
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0);
      for (int64_t c = 0; c < count; ++c) about[c] = load(x[channels_.first(c)]);
      sums_.sum(call.threads, Moments<T>{x, about}, sums);
    });
    moments_of_sums(sums, about, count, channels_.per_channel(), target);
    return target;
  }

  const float* sums_of_gradients(const Call& call, const Pass& pass, float* target) const {
    double* sums = pass.scratch<double>();
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      sums_.sum(call.threads,
                Products<T>{pass.output_gradient<T>(0).data(), pass.output<T>(0).data()}, sums);
    });
    for (int64_t i = 0; i < 2 * channels_.count; ++i) target[i] = static_cast<float>(sums[i]);
    return target;
  }
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "batch_norm", "1.0")
      .layer<BatchNorm>()
      .kernel<BatchNorm, BatchNormCpu>("cpu")
      .table();
}
