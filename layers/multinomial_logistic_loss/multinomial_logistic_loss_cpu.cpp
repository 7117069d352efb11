// MultinomialLogisticLoss on the cpu.
#include "layers/multinomial_logistic_loss/multinomial_logistic_loss.h"

#include <cmath>

namespace {

using namespace tandem::sdk;
using tandem::layers::Labels;
using tandem::layers::MultinomialLogisticLoss;
using tandem::layers::ScoreShape;

constexpr float least = 1e-20F;

class MultinomialLogisticLossCpu {
 public:
  MultinomialLogisticLossCpu(const Binding& binding, const Call&)
      : shape_(binding.input(0).shape, 1), labels_(shape_) {}

  void forward(const Call&, const Pass& pass) const {
    double sum = 0;
    for (int64_t i = 0; i < shape_.labels(); ++i) {
      const int64_t label = labels_.of(pass, i);
      if (label >= 0) sum -= std::log(static_cast<double>(probability(pass, i, label)));
    }
    *pass.output(0) = static_cast<float>(sum / divisor(pass));
  }

  void backward_data(const Call&, const Pass& pass) const {
    const double factor = static_cast<double>(pass.output_gradient(0)[0]) / divisor(pass);
    std::fill_n(pass.input_gradient(0).data(), shape_.labels() * shape_.classes, 0.0F);
    for (int64_t i = 0; i < shape_.labels(); ++i) {
      const int64_t label = labels_.of(pass, i);
      if (label < 0) continue;
      const auto p = static_cast<double>(probability(pass, i, label));
      pass.input_gradient(0)[at(i, label)] = static_cast<float>(-factor / p);
    }
  }

 private:
  [[nodiscard]] int64_t at(int64_t index, int64_t label) const {
    return (index / shape_.inner * shape_.classes + label) * shape_.inner + index % shape_.inner;
  }
  // A NaN stays NaN.
  [[nodiscard]] float probability(const Pass& pass, int64_t index, int64_t label) const {
    const float p = pass.input(0)[at(index, label)];
    return p < least ? least : p;
  }
  static double divisor(const Pass& pass) {
    return std::max(1.0, static_cast<double>(pass.normaliser()));
  }

  ScoreShape shape_;
  Labels labels_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "multinomial_logistic_loss", "1.0")
      .layer<MultinomialLogisticLoss>()
      .kernel<MultinomialLogisticLoss, MultinomialLogisticLossCpu>("cpu")
      .table();
}
