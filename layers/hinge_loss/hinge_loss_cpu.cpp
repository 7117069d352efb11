// HingeLoss on the cpu.
#include "layers/hinge_loss/hinge_loss.h"

#include "layers/common/row_sums.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::HingeLoss;
using tandem::layers::Labels;
using tandem::layers::ScoreShape;

class HingeLossCpu : public Needs {
 public:
  HingeLossCpu(const Binding& binding, const Call&)
      : shape_(binding.input(0).shape, 1),
        squares_(binding.attributes.text("norm") == "L2"),
        labels_(shape_) {
    scratch_bytes = tandem::layers::row_sum_bytes;
  }

  void forward(const Call& call, const Pass& pass) const {
    (void)labels_.check(pass);
    const double sum = tandem::layers::sum_of(
        call.threads, shape_.labels(), shape_.classes, pass.scratch<double>(), [&](int64_t index) {
          const int64_t label = labels_.of(pass, index);
          if (label < 0) return 0.0;
          const float* scores = pass.input(0) + first(index);
          double loss = 0;
          for (int64_t c = 0; c < shape_.classes; ++c) {
            const auto violation = static_cast<double>(over(scores[c * shape_.inner], c == label));
            loss += squares_ ? violation * violation : violation;
          }
          return loss;
        });
    *pass.output(0) = static_cast<float>(sum / divisor(pass));
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const auto factor = static_cast<float>(pass.output_gradient(0)[0] / divisor(pass));
    tandem::layers::for_rows(call.threads, shape_.labels(), shape_.classes, [&](int64_t index) {
      const int64_t label = labels_.of(pass, index);
      const float* scores = pass.input(0) + first(index);
      float* gradient = pass.input_gradient(0) + first(index);
      for (int64_t c = 0; c < shape_.classes; ++c) {
        const float violation = over(scores[c * shape_.inner], c == label);
        const float slope = squares_ ? 2 * violation : violation > 0 ? 1.0F : 0.0F;
        const float sign = c == label ? -factor : factor;
        gradient[c * shape_.inner] = label < 0 ? 0.0F : sign * slope;
      }
    });
  }

 private:
  // The amount by which a score violates its margin. A NaN stays NaN.
  static float over(float score, bool is_true) {
    const float violation = is_true ? 1 - score : 1 + score;
    return violation < 0 ? 0.0F : violation;
  }
  [[nodiscard]] int64_t first(int64_t index) const {
    return index / shape_.inner * shape_.classes * shape_.inner + index % shape_.inner;
  }
  static double divisor(const Pass& pass) {
    return std::max(1.0, static_cast<double>(pass.normaliser()));
  }

  ScoreShape shape_;
  bool squares_;
  Labels labels_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "hinge_loss", "1.0")
      .layer<HingeLoss>()
      .kernel<HingeLoss, HingeLossCpu>("cpu")
      .table();
}
