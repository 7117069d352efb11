// HuberLoss on the cpu.
#include "layers/huber_loss/huber_loss.h"

#include <algorithm>
#include <cmath>

#include "layers/common/row_sums.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::HuberLoss;

class HuberLossCpu : public Needs {
 public:
  HuberLossCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        size_(count(binding.input(0).shape) / rows_),
        delta_(binding.attributes.number("delta")) {
    scratch_bytes = tandem::layers::row_sum_bytes;
  }

  // A target is a label, which no layout changes.
  static LayoutOptions layouts(const Binding&) { return {{TANDEM_NCHW, TANDEM_NCHW, 0}}; }

  void forward(const Call& call, const Pass& pass) const {
    const double sum = tandem::layers::sum_of(
        call.threads, rows_, size_, pass.scratch<double>(), [&](int64_t row) {
          if (!pass.holds_sample(row)) return 0.0;
          const float *a = pass.input(0) + row * size_, *b = pass.input(1) + row * size_;
          return tandem::layers::sum_of_terms(size_, [&](int64_t i) {
            const double size = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
            const double square = std::min(size, delta_);
            return square * (size - square / 2);
          });
        });
    *pass.output(0) = static_cast<float>(sum / divisor(pass));
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const auto factor = static_cast<float>(pass.output_gradient(0)[0] / divisor(pass));
    const auto delta = static_cast<float>(delta_);
    tandem::layers::for_rows(call.threads, rows_, size_, [&](int64_t row) {
      const float *a = pass.input(0) + row * size_, *b = pass.input(1) + row * size_;
      float* gradient = pass.input_gradient(0) + row * size_;
      const float scale = pass.holds_sample(row) ? factor : 0.0F;
      for (int64_t i = 0; i < size_; ++i) {
        gradient[i] = scale * std::clamp(a[i] - b[i], -delta, delta);
      }
    });
  }

 private:
  static double divisor(const Pass& pass) {
    return std::max(1.0, static_cast<double>(pass.normaliser()));
  }

  int64_t rows_, size_;
  double delta_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "huber_loss", "1.0")
      .layer<HuberLoss>()
      .kernel<HuberLoss, HuberLossCpu>("cpu")
      .table();
}
