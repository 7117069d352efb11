// SigmoidCrossEntropyLoss on NVIDIA GPUs, from the scores; see the cpu kernel for the formula.
#pragma once

#include "layers/euclidean_loss/euclidean_loss_cuda.h"
#include "layers/sigmoid_cross_entropy_loss/sigmoid_cross_entropy_loss.h"

namespace tandem::layers {

// Which targets count.
struct CountedTargets {
  [[nodiscard]] TANDEM_HOST_DEVICE bool counts(int64_t i) const {
    return rows.holds_sample(cuda::quotient(i, size)) && !(ignores && targets[i] == ignored);
  }
  SampleRows rows;
  cuda::Divisor size;
  bool ignores;
  float ignored;
  const float* targets;
};

struct SigmoidLossCount {
  TANDEM_HOST_DEVICE double operator()(int64_t i) const { return targets.counts(i) ? 1 : 0; }
  CountedTargets targets;
};

struct SigmoidLossTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t i) const {
    if (!targets.counts(i)) return 0;
    const float x = scores[i], target = targets.targets[i];
    const float linear = x >= 0 ? x * (1 - target) : -x * target;
    return static_cast<double>(linear) + static_cast<double>(log1pf(expf(x >= 0 ? -x : x)));
  }
  CountedTargets targets;
  const float* scores;
};

struct SigmoidLossGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float factor = *loss_weight / *divisor;
    const float p = 1 / (1 + expf(-scores[i]));
    gradient[i] = targets.counts(i) ? factor * (p - targets.targets[i]) : 0.0F;
  }
  CountedTargets targets;
  const float *loss_weight, *divisor, *scores;
  float* gradient;
};

class SigmoidCrossEntropyLossCuda : public sdk::Needs {
 public:
  SigmoidCrossEntropyLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : elements_(sdk::count(binding.input(0).shape)),
        size_(elements_ / binding.input(0).shape.n),
        ignores_(binding.attributes.is_set("ignore_label")),
        ignored_(ignores_ ? static_cast<float>(binding.attributes.integer("ignore_label")) : 0),
        normaliser_(binding.attributes, size_),
        total_(elements_) {
    scratch_bytes = total_.scratch_bytes();
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = sizeof(float);
    statistics = normaliser_.counts() ? 1 : 0;
  }

  void forward_statistics(const sdk::Call& call, const sdk::DevicePass& pass) const {
    total_.run(call, SigmoidLossCount{targets(pass)}, pass.scratch<double>().get(),
               StoreStatistic{pass.statistics().get()});
  }
  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    total_.run(call, SigmoidLossTerm{targets(pass), pass.input(0).get()},
               pass.scratch<double>().get(),
               StoreLoss{normaliser_.of(pass), 1, pass.output(0).get(),
                         saved_bytes > 0 ? pass.saved().get() : nullptr});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(
        call, elements_,
        SigmoidLossGradient{targets(pass), pass.output_gradient(0).get(), pass.saved().get(),
                            pass.input(0).get(), pass.input_gradient(0).get()});
  }

 private:
  [[nodiscard]] CountedTargets targets(const sdk::DevicePass& pass) const {
    return {SampleRows(pass), size_, ignores_, ignored_, pass.input(1).get()};
  }

  int64_t elements_, size_;
  bool ignores_;
  float ignored_;
  DeviceNormaliser normaliser_;
  cuda::Total total_;
};

}  // namespace tandem::layers
