// SoftmaxWithLoss on the cpu. The logarithm is taken of the sum, not of a probability, so that a
// hopeless row has its true loss instead of that of the smallest float.
#include "layers/softmax_with_loss/softmax_with_loss.h"

#include <cmath>

namespace {

using namespace tandem::sdk;
using tandem::layers::Labels;
using tandem::layers::SoftmaxWithLoss;

class SoftmaxWithLossCpu : public Needs {
 public:
  SoftmaxWithLossCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        classes_(binding.input(0).shape.c),
        probabilities_(binding.output_count() == 2),
        labels_(binding.attributes, classes_) {
    const int64_t bytes = rows_ * classes_ * static_cast<int64_t>(sizeof(float));
    // Without a use for the probabilities they are scratch, one row after the other.
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
      saved_bytes = bytes;
    } else {
      scratch_bytes = classes_ * static_cast<int64_t>(sizeof(float));
    }
  }

  void forward(const Call&, const Pass& pass) const {
    double loss = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = labels_.of(pass.input(1), row);
      const float* scores = pass.input(0) + row * classes_;
      float* p = saved_bytes > 0 ? pass.saved() + row * classes_ : pass.scratch();
      const double normaliser = softmax(scores, p);
      if (label >= 0) loss += normaliser - static_cast<double>(scores[label]);
      if (probabilities_) std::copy_n(p, classes_, pass.output(1) + row * classes_);
    }
    // With no row that counts, nothing is divided: the normaliser may be zero then.
    *pass.output(0) = loss == 0 ? 0.0F : static_cast<float>(loss / pass.normaliser());
  }

  void backward_data(const Call&, const Pass& pass) const {
    const float* p = pass.saved();
    float* gradient = pass.input_gradient(0);
    const float factor = *pass.output_gradient(0) / pass.normaliser();
    for (int64_t row = 0; row < rows_; ++row, p += classes_, gradient += classes_) {
      const int64_t label = labels_.of(pass.input(1), row);
      if (label < 0) {
        std::fill_n(gradient, classes_, 0.0F);
        continue;
      }
      for (int64_t i = 0; i < classes_; ++i) gradient[i] = factor * p[i];
      gradient[label] = factor * (p[label] - 1.0F);
    }
  }

 private:
  // Writes a row's probabilities and returns log(sum(exp(scores))).
  double softmax(const float* scores, float* p) const {
    const float highest = *std::max_element(scores, scores + classes_);
    double sum = 0;
    for (int64_t i = 0; i < classes_; ++i) {
      p[i] = std::exp(scores[i] - highest);
      sum += static_cast<double>(p[i]);
    }
    const auto factor = static_cast<float>(1 / sum);
    for (int64_t i = 0; i < classes_; ++i) p[i] *= factor;
    return static_cast<double>(highest) + std::log(sum);
  }

  int64_t rows_, classes_;
  bool probabilities_;
  Labels labels_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "softmax_with_loss", "1.0")
      .layer<SoftmaxWithLoss>()
      .kernel<SoftmaxWithLoss, SoftmaxWithLossCpu>("cpu")
      .table();
}
