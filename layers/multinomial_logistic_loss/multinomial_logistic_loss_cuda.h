// MultinomialLogisticLoss on NVIDIA GPUs: one term per label.
#pragma once

#include "layers/common/rows_cuda.h"
#include "layers/multinomial_logistic_loss/multinomial_logistic_loss.h"

namespace tandem::layers {

struct LabelledProbability {
  // A NaN stays NaN.
  [[nodiscard]] TANDEM_HOST_DEVICE double of(int64_t index, int64_t label) const {
    const float p = probabilities[offset(index, label)];
    return static_cast<double>(p < 1e-20F ? 1e-20F : p);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t offset(int64_t index, int64_t label) const {
    return labels.first(index) + label * labels.shape().inner;
  }
  DeviceLabels labels;
  const float* probabilities;
};

struct MultinomialTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t index) const {
    const int64_t label = probability.labels.of(index);
    if (label == DeviceLabels::no_class) return static_cast<double>(NAN);
    return label < 0 ? 0 : -log(probability.of(index, label));
  }
  LabelledProbability probability;
};

// Writes the gradient at the labels; it is zero elsewhere.
struct MultinomialGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t index) const {
    const int64_t label = probability.labels.of(index);
    if (label < 0) return;
    const double factor = static_cast<double>(*loss_weight) / normaliser.divisor();
    gradient[probability.offset(index, label)] =
        static_cast<float>(-factor / probability.of(index, label));
  }
  LabelledProbability probability;
  DeviceNormaliser normaliser;
  const float* loss_weight;
  float* gradient;
};

class MultinomialLogisticLossCuda : public sdk::Needs {
 public:
  MultinomialLogisticLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : labels_(ScoreShape(binding.input(0).shape, 1)),
        elements_(sdk::count(binding.input(0).shape)),
        total_(labels_.shape.labels()) {
    scratch_bytes = total_.scratch_bytes();
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    total_.run(call, MultinomialTerm{probability(pass)}, pass.scratch<double>().get(),
               StoreLoss{DeviceNormaliser(pass), 1, pass.output(0).get(), nullptr});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::clear(call, pass.input_gradient(0).get(), elements_);
    cuda::for_each(
        call, labels_.shape.labels(),
        MultinomialGradient{probability(pass), DeviceNormaliser(pass),
                            pass.output_gradient(0).get(), pass.input_gradient(0).get()});
  }

 private:
  [[nodiscard]] LabelledProbability probability(const sdk::DevicePass& pass) const {
    return {DeviceLabels(labels_, pass), pass.input(0).get()};
  }

  LabelSettings labels_;
  int64_t elements_;
  cuda::Total total_;
};

}  // namespace tandem::layers
