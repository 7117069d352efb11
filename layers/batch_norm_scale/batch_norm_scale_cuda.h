// BatchNormScale on NVIDIA GPUs. With a fused ReLU the backward passes compute y once more instead
// of reading it. A sum with another layer's output can be fused, too.
#pragma once

#include "layers/batch_norm/batch_norm_cuda.h"
#include "layers/batch_norm_scale/batch_norm_scale_bodies_cuda.h"

namespace tandem::layers {

// Saved memory: the coefficients, then 1 / the number of values of a channel in the batch.
class BatchNormScaleCuda : public BatchNormCuda {
 public:
  static constexpr uint32_t fused_gradients = relu_only;
  static constexpr bool fuses_sum = true;

  BatchNormScaleCuda(const sdk::Binding& binding, const sdk::Call& call)
      : BatchNormCuda(binding, call), applies_relu_gradient_(fuses_relu_ && !binding.fuses_sum()) {
    saved_bytes = 0;
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA | TANDEM_WANTS_BACKWARD_WEIGHTS)) {
      saved_bytes = (3 * channels_ + 1) * 4;
    }
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    float* values = saved_bytes > 0 ? pass.saved().get() : coefficients(pass);
    find_coefficients(call, pass, values, saved_bytes > 0 ? values + 2 * channels_ : nullptr);
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T *x = pass.input<T>(0).get(), *addend = pass.addend<T>().get();
      T* y = pass.output<T>(0).get();
      const BatchNormForward<T, BatchNormScaleLines> plain{lines(pass, values), x, y, fuses_relu_};
      if (addend == nullptr) {
        cuda::for_groups(call, layout_of(broadcast_), plain);
      } else {
        cuda::for_groups(call, layout_of(broadcast_), BatchNormScaleSum<T>{plain, addend});
      }
    });
  }

  void backward_statistics(const sdk::Call& call, const sdk::DevicePass& pass) const {
    gradient_sums(call, pass, pass.statistics().get());
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const float* sums = kept_ ? nullptr : sums_for(call, pass);
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_groups(
          call, layout_of(broadcast_),
          BatchNormScaleBackward<T>{lines(pass, pass.saved().get()),
                                    pass.output_gradient<T>(0).get(), pass.input<T>(0).get(), sums,
                                    pass.input_gradient<T>(0).get(), applies_relu_gradient_});
    });
  }

  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const float* sums = sums_for(call, pass);
    const auto each = static_cast<double>(broadcast_.elements() / channels_);
    cuda::for_each(
        call, channels_,
        BatchNormScaleWeights{
            channels_, sums, has_own_sums() ? nullptr : pass.saved().get() + 3 * channels_,
            static_cast<float>(1 / each), pass.weight_gradient(BatchNormScale::factors).get(),
            pass.weight_gradient(BatchNormScale::biases).get(), pass.accumulate()});
  }

 private:
  // Whether the sums of the backward pass are those of the rows, which no statistics pass gives.
  [[nodiscard]] bool has_own_sums() const { return kept_ || per_device_; }

  [[nodiscard]] BatchNormScaleLines lines(const sdk::DevicePass& pass,
                                          const float* coefficients) const {
    return {channels_, coefficients, pass.weight(BatchNormScale::factors).get(),
            pass.weight(BatchNormScale::biases).get()};
  }

  const float* sums_for(const sdk::Call& call, const sdk::DevicePass& pass) const {
    if (!has_own_sums()) return pass.statistics().get();
    gradient_sums(call, pass, local<float>(pass));
    return local<float>(pass);
  }

  void gradient_sums(const sdk::Call& call, const sdk::DevicePass& pass, float* target) const {
    const float* values = pass.saved().get();
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      sums_.run(
          call,
          BatchNormScaleGradientTerms<T>{lines(pass, values), pass.output_gradient<T>(0).get(),
                                         pass.input<T>(0).get(), applies_relu_gradient_},
          pass.scratch<cuda::Pair>().get(),
          BatchNormScaleStoreGradients{channels_, values, target});
    });
  }

  bool applies_relu_gradient_;  // not of a ReLU behind a sum
};

}  // namespace tandem::layers
