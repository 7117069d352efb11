// EuclideanLoss on the cpu, in any layout that both inputs have.
#include "layers/euclidean_loss/euclidean_loss.h"

#include "layers/common/row_sums.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::EuclideanLoss;
using tandem::layers::for_rows;
using tandem::layers::squared_distance;
using tandem::layers::sum_of;

class EuclideanLossCpu : public Needs {
 public:
  EuclideanLossCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n), size_(count(binding.input(0).shape) / rows_) {
    scratch_bytes = tandem::layers::row_sum_bytes;
  }

  static LayoutOptions layouts(const Binding& binding) {
    if (equal(binding.input(0).shape, binding.input(1).shape)) {
      return any_layout(binding.input(0).shape.c);
    }
    return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
  }

  void forward(const Call& call, const Pass& pass) const {
    const double sum = sum_of(call.threads, rows_, size_, pass.scratch<double>(), [&](int64_t row) {
      if (!pass.holds_sample(row)) return 0.0;
      const float *a = pass.input(0) + row * size_, *b = pass.input(1) + row * size_;
      return squared_distance(size_, a, b);
    });
    *pass.output(0) = static_cast<float>(sum / (2 * divisor(pass)));
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const auto factor = static_cast<float>(pass.output_gradient(0)[0] / divisor(pass));
    for (const size_t input : {size_t{0}, size_t{1}}) {
      if (pass.input_gradient(input) == nullptr) continue;
      for_rows(call.threads, rows_, size_, [&](int64_t row) {
        const float *own = pass.input(input) + row * size_,
                    *other = pass.input(1 - input) + row * size_;
        float* gradient = pass.input_gradient(input) + row * size_;
        const float scale = pass.holds_sample(row) ? factor : 0.0F;
        for (int64_t i = 0; i < size_; ++i) gradient[i] = scale * (own[i] - other[i]);
      });
    }
  }

 private:
  static double divisor(const Pass& pass) {
    return std::max(1.0, static_cast<double>(pass.normaliser()));
  }

  int64_t rows_, size_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "euclidean_loss", "1.0")
      .layer<EuclideanLoss>()
      .kernel<EuclideanLoss, EuclideanLossCpu>("cpu")
      .table();
}
