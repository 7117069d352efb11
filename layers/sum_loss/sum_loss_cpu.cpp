// SumLoss on the cpu, in any layout.
#include "layers/sum_loss/sum_loss.h"

#include "layers/common/row_sums.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::for_rows;
using tandem::layers::Normaliser;
using tandem::layers::sum_of;
using tandem::layers::sum_of_terms;
using tandem::layers::SumLoss;

class SumLossCpu : public Needs {
 public:
  SumLossCpu(const Binding& binding, const Call&)
      : normaliser_(binding.attributes, 1),
        rows_(binding.input(0).shape.n),
        size_(count(binding.input(0).shape) / rows_) {
    scratch_bytes = tandem::layers::row_sum_bytes;
  }

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const double sum = sum_of(call.threads, rows_, size_, pass.scratch<double>(), [&](int64_t row) {
      const float* x = pass.input(0) + row * size_;
      return pass.holds_sample(row) ? sum_of_terms(size_, [x](int64_t i) { return x[i]; }) : 0.0;
    });
    *pass.output(0) = static_cast<float>(sum / normaliser_.divisor(pass));
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const auto each = static_cast<float>(pass.output_gradient(0)[0] / normaliser_.divisor(pass));
    for_rows(call.threads, rows_, size_, [&](int64_t row) {
      float* gradient = pass.input_gradient(0) + row * size_;
      std::fill(gradient, gradient + size_, pass.holds_sample(row) ? each : 0.0F);
    });
  }

 private:
  Normaliser normaliser_;
  int64_t rows_, size_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "sum_loss", "1.0")
      .layer<SumLoss>()
      .kernel<SumLoss, SumLossCpu>("cpu")
      .table();
}
