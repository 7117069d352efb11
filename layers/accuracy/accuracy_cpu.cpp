// Accuracy on the cpu: counts the classes that score at least as high as the true one.
#include "layers/accuracy/accuracy.h"

#include "layers/common/row_sums.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::Accuracy;
using tandem::layers::Labels;
using tandem::layers::ScoreShape;

class AccuracyCpu : public Needs {
 public:
  AccuracyCpu(const Binding& binding, const Call&)
      : shape_(binding.input(0).shape, binding.attributes.integer("axis")),
        top_(binding.attributes.integer("top_k")),
        by_class_(binding.output_count() == 2),
        labels_(shape_, binding.attributes) {
    scratch_bytes = tandem::layers::row_sum_bytes;
    statistics = Accuracy::statistics(binding.attributes, binding.output_count(), shape_);
  }

  void forward_statistics(const Call&, const Pass& pass) const {
    pass.statistics()[0] = static_cast<float>(labels_.check(pass));
    if (!by_class_) return;
    float* all = pass.statistics() + 1;
    float* right = all + shape_.classes;
    std::fill_n(all, 2 * shape_.classes, 0.0F);
    for (int64_t i = 0; i < shape_.labels(); ++i) {
      const int64_t label = labels_.of(pass, i);
      if (label < 0) continue;
      all[label] += 1;
      right[label] += is_right(pass, i) ? 1.0F : 0.0F;
    }
  }

  void forward(const Call& call, const Pass& pass) const {
    (void)labels_.check(pass);
    const double right = tandem::layers::sum_of(
        call.threads, shape_.labels(), shape_.classes, pass.scratch<double>(),
        [&](int64_t i) { return is_right(pass, i) ? 1.0 : 0.0; });
    const double counted = statistics > 0 ? static_cast<double>(pass.statistics()[0])
                                          : static_cast<double>(pass.normaliser()) *
                                                static_cast<double>(shape_.labels_of_row());
    *pass.output(0) = right == 0 ? 0.0F : static_cast<float>(right / counted);
    if (!by_class_) return;
    const float* all = pass.statistics() + 1;
    for (int64_t c = 0; c < shape_.classes; ++c) {
      pass.output(1)[c] = all[c] == 0 ? 0.0F : all[shape_.classes + c] / all[c];
    }
  }

 private:
  // Also false for a label that does not count.
  [[nodiscard]] bool is_right(const Pass& pass, int64_t index) const {
    const int64_t label = labels_.of(pass, index);
    if (label < 0) return false;
    const int64_t outer = index / shape_.inner, column = index % shape_.inner;
    const float* scores = pass.input(0) + outer * shape_.classes * shape_.inner + column;
    return rank(scores, label) < top_;
  }
  // The number of other classes whose score is not below that of the true one.
  [[nodiscard]] int64_t rank(const float* scores, int64_t label) const {
    const int64_t step = shape_.inner;
    const float own = scores[label * step];
    int64_t others = 0;
    for (int64_t i = 0; i < shape_.classes; ++i) others += !(scores[i * step] < own) ? 1 : 0;
    const bool number = own == own;
    return number ? others - 1 : shape_.classes;
  }

  ScoreShape shape_;
  int64_t top_;
  bool by_class_;
  Labels labels_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "accuracy", "1.0")
      .layer<Accuracy>()
      .kernel<Accuracy, AccuracyCpu>("cpu")
      .table();
}
