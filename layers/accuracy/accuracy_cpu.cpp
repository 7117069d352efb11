// Accuracy on the cpu: counts the classes that score at least as high as the true one.
#include "layers/accuracy/accuracy.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::Accuracy;
using tandem::layers::Labels;

class AccuracyCpu {
 public:
  AccuracyCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        classes_(binding.input(0).shape.c),
        top_(binding.attributes.integer("top_k")),
        labels_(binding.attributes, classes_) {}

  void forward(const Call&, const Pass& pass) const {
    int64_t right = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = labels_.of(pass.input(1), row);
      if (label >= 0 && rank(pass.input(0) + row * classes_, label) < top_) ++right;
    }
    *pass.output(0) = right == 0 ? 0.0F : static_cast<float>(right) / pass.normaliser();
  }

 private:
  // How many other classes are not clearly below the true one.
  [[nodiscard]] int64_t rank(const float* scores, int64_t label) const {
    int64_t others = 0;
    for (int64_t i = 0; i < classes_; ++i) others += !(scores[i] < scores[label]) ? 1 : 0;
    const bool number = scores[label] == scores[label];
    return number ? others - 1 : classes_;
  }

  int64_t rows_, classes_, top_;
  Labels labels_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "accuracy", "1.0")
      .layer<Accuracy>()
      .kernel<Accuracy, AccuracyCpu>("cpu")
      .table();
}
