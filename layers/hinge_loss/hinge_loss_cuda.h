// HingeLoss on NVIDIA GPUs: one term per score.
#pragma once

#include "layers/common/rows_cuda.h"
#include "layers/hinge_loss/hinge_loss.h"

namespace tandem::layers {

// The amount by which a score violates its margin.
struct HingeViolation {
  // The label and class of the score at index `i`.
  struct Score {
    int64_t label;
    bool is_true;
  };
  [[nodiscard]] TANDEM_HOST_DEVICE Score score(int64_t i) const {
    const DeviceLabels::Score here = labels.score(i);
    const int64_t label = labels.of(here.label);
    return {label, label == here.of_class};
  }
  // A NaN stays NaN.
  [[nodiscard]] TANDEM_HOST_DEVICE float of(int64_t i, bool is_true) const {
    const float violation = is_true ? 1 - scores[i] : 1 + scores[i];
    return violation < 0 ? 0.0F : violation;
  }
  DeviceLabels labels;
  bool squares;
  const float* scores;
};

struct HingeTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t i) const {
    const HingeViolation::Score score = violation.score(i);
    if (score.label == DeviceLabels::no_class) return static_cast<double>(NAN);
    if (score.label < 0) return 0;
    const auto over = static_cast<double>(violation.of(i, score.is_true));
    return violation.squares ? over * over : over;
  }
  HingeViolation violation;
};

struct HingeGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const auto factor =
        static_cast<float>(static_cast<double>(*loss_weight) / normaliser.divisor());
    const HingeViolation::Score score = violation.score(i);
    const float over = violation.of(i, score.is_true);
    const float slope = violation.squares ? 2 * over : over > 0 ? 1.0F : 0.0F;
    gradient[i] = score.label < 0 ? 0.0F : (score.is_true ? -factor : factor) * slope;
  }
  HingeViolation violation;
  DeviceNormaliser normaliser;
  const float* loss_weight;
  float* gradient;
};

class HingeLossCuda : public sdk::Needs {
 public:
  HingeLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : labels_(ScoreShape(binding.input(0).shape, 1)),
        squares_(binding.attributes.text("norm") == "L2"),
        elements_(sdk::count(binding.input(0).shape)),
        total_(elements_) {
    scratch_bytes = total_.scratch_bytes();
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    total_.run(call, HingeTerm{violation(pass)}, pass.scratch<double>().get(),
               StoreLoss{DeviceNormaliser(pass), 1, pass.output(0).get(), nullptr});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(call, elements_,
                   HingeGradient{violation(pass), DeviceNormaliser(pass),
                                 pass.output_gradient(0).get(), pass.input_gradient(0).get()});
  }

 private:
  [[nodiscard]] HingeViolation violation(const sdk::DevicePass& pass) const {
    return {DeviceLabels(labels_, pass), squares_, pass.input(0).get()};
  }

  LabelSettings labels_;
  bool squares_;
  int64_t elements_;
  cuda::Total total_;
};

}  // namespace tandem::layers
