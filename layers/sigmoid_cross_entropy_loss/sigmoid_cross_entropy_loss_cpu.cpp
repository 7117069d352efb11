// SigmoidCrossEntropyLoss on the cpu, from the scores: for x >= 0 the loss is (1 - t) x + log(1 +
// exp(-x)), otherwise -t x + log(1 + exp(x)), so that nothing overflows.
#include "layers/sigmoid_cross_entropy_loss/sigmoid_cross_entropy_loss.h"

#include <cmath>

#include "layers/common/row_sums.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::Normaliser;
using tandem::layers::SigmoidCrossEntropyLoss;

class SigmoidCrossEntropyLossCpu : public Needs {
 public:
  SigmoidCrossEntropyLossCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        size_(count(binding.input(0).shape) / rows_),
        ignores_(binding.attributes.is_set("ignore_label")),
        ignored_(ignores_ ? static_cast<float>(binding.attributes.integer("ignore_label")) : 0),
        normaliser_(binding.attributes, size_) {
    scratch_bytes = tandem::layers::row_sum_bytes;
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = sizeof(float);
    statistics = normaliser_.counts() ? 1 : 0;
  }

  void forward_statistics(const Call& call, const Pass& pass) const {
    pass.statistics()[0] = static_cast<float>(
        sum(call, pass, [this](float, float target) { return counts(target) ? 1.0 : 0.0; }));
  }

  void forward(const Call& call, const Pass& pass) const {
    const double loss = sum(call, pass, [this](float x, float target) {
      if (!counts(target)) return 0.0;
      const float linear = x >= 0 ? x * (1 - target) : -x * target;
      return static_cast<double>(linear) + static_cast<double>(std::log1p(std::exp(-std::abs(x))));
    });
    const double divisor = normaliser_.divisor(pass);
    if (saved_bytes > 0) pass.saved()[0] = static_cast<float>(divisor);
    *pass.output(0) = static_cast<float>(loss / divisor);
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float factor = pass.output_gradient(0)[0] / pass.saved()[0];
    tandem::layers::for_rows(call.threads, rows_, 16 * size_, [&](int64_t row) {
      const float *x = pass.input(0) + row * size_, *target = pass.input(1) + row * size_;
      float* gradient = pass.input_gradient(0) + row * size_;
      const float scale = pass.holds_sample(row) ? factor : 0.0F;
      for (int64_t i = 0; i < size_; ++i) {
        const float p = 1 / (1 + std::exp(-x[i]));
        gradient[i] = counts(target[i]) ? scale * (p - target[i]) : 0.0F;
      }
    });
  }

 private:
  [[nodiscard]] bool counts(float target) const { return !ignores_ || target != ignored_; }

  template <class Term>
  double sum(const Call& call, const Pass& pass, const Term& term) const {
    return tandem::layers::sum_of(
        call.threads, rows_, 16 * size_, pass.scratch<double>(), [&](int64_t row) {
          if (!pass.holds_sample(row)) return 0.0;
          const float *x = pass.input(0) + row * size_, *target = pass.input(1) + row * size_;
          return tandem::layers::sum_of_terms(size_,
                                              [&](int64_t i) { return term(x[i], target[i]); });
        });
  }

  int64_t rows_, size_;
  bool ignores_;
  float ignored_;
  Normaliser normaliser_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "sigmoid_cross_entropy_loss", "1.0")
      .layer<SigmoidCrossEntropyLoss>()
      .kernel<SigmoidCrossEntropyLoss, SigmoidCrossEntropyLossCpu>("cpu")
      .table();
}
