// BatchNorm on NVIDIA GPUs. The backward pass needs only y and 1 / sqrt(variance + eps).
#pragma once

#include "layers/batch_norm/batch_norm.h"
#include "layers/batch_norm/batch_norm_bodies_cuda.h"
#include "layers/common/broadcast_cuda.h"

namespace tandem::layers {

class BatchNormCuda : public sdk::Needs {
 public:
  BatchNormCuda(const sdk::Binding& binding, const sdk::Call&);

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint32_t fused_activations = relu_only;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward_statistics(const sdk::Call& call, const sdk::DevicePass& pass) const {
    moments(call, pass, pass.statistics<double>().get());
  }
  void merge_forward_statistics(const sdk::Call& call, float* target, const float* const* sources,
                                uint32_t source_count) const;
  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const;
  void backward_statistics(const sdk::Call& call, const sdk::DevicePass& pass) const {
    gradient_sums(call, pass, pass.statistics().get());
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const;

 protected:
  // Scratch: the partial sums, then local statistics, then coefficients.
  template <class T>
  T* local(const sdk::DevicePass& pass) const {
    return reinterpret_cast<T*>(pass.scratch<char>().get() + sums_.scratch_bytes());
  }
  float* coefficients(const sdk::DevicePass& pass) const {
    return reinterpret_cast<float*>(local<double>(pass) + 2 + 2 * channels_);  // aligned
  }
  // Of the forward pass, with the running sums updated. saved: nullptr without a backward pass.
  void find_coefficients(const sdk::Call& call, const sdk::DevicePass& pass, float* coefficients,
                         float* saved) const;

  Broadcast broadcast_;
  BroadcastIndex index_;
  int64_t channels_;
  int32_t dtype_;
  cuda::TensorSums<cuda::Pair> sums_;
  bool training_, kept_, per_device_, fuses_relu_;
  double eps_;
  float fraction_;

 private:
  void moments(const sdk::Call& call, const sdk::DevicePass& pass, double* target) const;
  void gradient_sums(const sdk::Call& call, const sdk::DevicePass& pass, float* target) const;
};

inline BatchNormCuda::BatchNormCuda(const sdk::Binding& binding, const sdk::Call&)
    : broadcast_(binding.input(0), {1, 1}),
      index_(broadcast_),
      channels_(binding.input(0).shape.c),
      dtype_(binding.input(0).dtype),
      sums_(sums_over<cuda::Pair>(broadcast_)),
      training_(binding.training()),
      kept_(BatchNorm::uses_kept_statistics(binding.attributes, training_)),
      per_device_(!kept_ && binding.attributes.boolean("per_device")),
      fuses_relu_(binding.fuses_relu()),
      eps_(binding.attributes.number("eps")),
      fraction_(static_cast<float>(binding.attributes.number("moving_average_fraction"))) {
  scratch_bytes = sums_.scratch_bytes() + (2 + 2 * channels_) * 8 + 3 * channels_ * 4;
  if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = (channels_ + 1) * 4;
  if (!kept_ && !per_device_) statistics = BatchNorm::forward_statistics(channels_);
}

inline void BatchNormCuda::moments(const sdk::Call& call, const sdk::DevicePass& pass,
                                   double* target) const {
  cuda::with_elements(dtype_, [&](auto element) {
    using T = decltype(element);
    const BatchNormOrigin<T> origin{index_, pass.input<T>(0).get(),
                                    broadcast_.elements() / channels_};
    sums_.run(call, BatchNormMomentTerms<T>{origin}, pass.scratch<cuda::Pair>().get(),
              BatchNormStoreMoments<T>{origin, channels_, target});
  });
}

inline void BatchNormCuda::gradient_sums(const sdk::Call& call, const sdk::DevicePass& pass,
                                         float* target) const {
  cuda::with_elements(dtype_, [&](auto element) {
    using T = decltype(element);
    const T* y = pass.output<T>(0).get();
    sums_.run(call, BatchNormGradientTerms<T>{pass.output_gradient<T>(0).get(), y},
              pass.scratch<cuda::Pair>().get(), BatchNormStoreGradients{channels_, target});
  });
}

inline void BatchNormCuda::merge_forward_statistics(const sdk::Call& call, float* target,
                                                    const float* const* sources,
                                                    uint32_t source_count) const {
  auto* all = reinterpret_cast<double*>(target);
  for (uint32_t s = 0; s < source_count; ++s) {
    const auto* part = reinterpret_cast<const double*>(sources[s]);
    cuda::for_each(call, channels_, BatchNormMerge{channels_, all, part});
    cuda::for_each(call, 1, BatchNormMergeCounts{all, part});
  }
}

inline void BatchNormCuda::find_coefficients(const sdk::Call& call, const sdk::DevicePass& pass,
                                             float* coefficients, float* saved) const {
  BatchNormCoefficients body{channels_,
                             eps_,
                             fraction_,
                             nullptr,
                             pass.state(0).get(),
                             pass.state(1).get(),
                             pass.state(2).get(),
                             coefficients,
                             saved};
  if (kept_) {
    cuda::for_each(call, channels_, BatchNormKeptCoefficients{body});
  } else {
    body.statistics = per_device_ ? local<double>(pass) : pass.statistics<double>().get();
    if (per_device_) moments(call, pass, local<double>(pass));
    if (!training_) body.kept_mean = nullptr;
    cuda::for_each(call, channels_, body);
  }
}

inline void BatchNormCuda::forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
  find_coefficients(call, pass, coefficients(pass), saved_bytes > 0 ? pass.saved().get() : nullptr);
  cuda::with_elements(dtype_, [&](auto element) {
    using T = decltype(element);
    cuda::for_groups(call, layout_of(broadcast_),
                     BatchNormForward<T, BatchNormLines>{{channels_, coefficients(pass)},
                                                         pass.input<T>(0).get(),
                                                         pass.output<T>(0).get(),
                                                         fuses_relu_});
  });
}

inline void BatchNormCuda::backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
  const float* sums = nullptr;
  if (per_device_) {
    gradient_sums(call, pass, local<float>(pass));
    sums = local<float>(pass);
  } else if (!kept_) {
    sums = pass.statistics().get();
  }
  cuda::with_elements(dtype_, [&](auto element) {
    using T = decltype(element);
    cuda::for_groups(
        call, layout_of(broadcast_),
        BatchNormBackward<T>{channels_, pass.output_gradient<T>(0).get(), pass.output<T>(0).get(),
                             pass.saved().get(), sums, pass.input_gradient<T>(0).get()});
  });
}

}  // namespace tandem::layers
