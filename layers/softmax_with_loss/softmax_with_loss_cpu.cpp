// SoftmaxWithLoss on the cpu. It takes the logarithm of the sum, not of a probability, so that the
// loss of a row with a very small probability is exact, too.
#include "layers/softmax_with_loss/softmax_with_loss.h"

#include <algorithm>
#include <cmath>

#include "layers/common/row_sums.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::for_rows;
using tandem::layers::Labels;
using tandem::layers::Normaliser;
using tandem::layers::ScoreShape;
using tandem::layers::SoftmaxWithLoss;

constexpr int64_t widest = 64;  // positions whose classes are processed together
constexpr int64_t header = 16;  // floats of saved memory before the probabilities

class SoftmaxWithLossCpu : public Needs {
 public:
  SoftmaxWithLossCpu(const Binding& binding, const Call&)
      : shape_(binding.input(0).shape, binding.attributes.integer("axis")),
        width_(std::min(widest, shape_.inner)),
        tiles_((shape_.inner + width_ - 1) / width_),
        outputs_(binding.output_count()),
        has_targets_(tandem::layers::reads_targets(binding.input(0).shape, binding.input(1).shape,
                                                   binding.attributes.integer("axis"))),
        labels_(shape_, binding.attributes),
        normaliser_(binding.attributes, shape_.labels_of_row()) {
    scratch_bytes = tandem::layers::row_sum_bytes;
    // Without a backward pass, the probabilities of a tile are on its thread's stack or in the
    // output. Otherwise they are saved, after the divisor.
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
      saved_bytes = (header + count(binding.input(0).shape)) * 4;
    }
    statistics = normaliser_.counts() ? 1 : 0;
  }

  void forward_statistics(const Call&, const Pass& pass) const {
    pass.statistics()[0] = static_cast<float>(labels_.check(pass));
  }

  void forward(const Call& call, const Pass& pass) const {
    has_targets_ ? check_targets(pass) : static_cast<void>(labels_.check(pass));
    float* saved = saved_bytes > 0 ? pass.saved() + header : nullptr;
    float* output = outputs_ == 2 ? pass.output(1).data() : nullptr;
    const double loss = tandem::layers::sum_of(
        call.threads, shape_.outer * tiles_, shape_.classes * width_ * 16, pass.scratch<double>(),
        [&](int64_t unit) { return tile(pass, unit, saved, output); });
    const double divisor = normaliser_.divisor(pass);
    if (saved != nullptr) pass.saved()[0] = static_cast<float>(divisor);
    *pass.output(0) = static_cast<float>(loss / divisor);
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float* probabilities = pass.saved() + header;
    const float factor = *pass.output_gradient(0) / pass.saved()[0];
    const int64_t size = shape_.classes * shape_.inner;
    for_rows(call.threads, shape_.outer, size, [&](int64_t outer) {
      const float* p = probabilities + outer * size;
      float* gradient = pass.input_gradient(0) + outer * size;
      if (has_targets_) {
        target_gradient(pass, outer, factor, p, gradient);
        return;
      }
      for (int64_t i = 0; i < size; ++i) gradient[i] = factor * p[i];
      for (int64_t i = 0; i < shape_.inner; ++i) {
        const int64_t label = labels_.of(pass, outer * shape_.inner + i);
        const int64_t at = label * shape_.inner + i;
        if (label >= 0) {
          gradient[at] = factor * (p[at] - 1.0F);
        } else {
          for (int64_t k = i; k < size; k += shape_.inner) gradient[k] = 0;
        }
      }
    });
  }

 private:
  // The loss of a tile of positions. The probabilities are written to `saved` and `output` if these
  // are wanted.
  double tile(const Pass& pass, int64_t unit, float* saved, float* output) const {
    const int64_t outer = unit / tiles_, begin = unit % tiles_ * width_;
    const int64_t width = std::min(width_, shape_.inner - begin), stride = shape_.inner;
    const int64_t offset = outer * shape_.classes * stride + begin;
    const float* scores = pass.input(0) + offset;
    float highest[widest];
    double sums[widest] = {};
    std::copy_n(scores, width, highest);
    for (int64_t c = 1; c < shape_.classes; ++c) {
      const float* s = scores + c * stride;
      for (int64_t k = 0; k < width; ++k) highest[k] = s[k] > highest[k] ? s[k] : highest[k];
    }
    float* p = saved != nullptr ? saved + offset : output != nullptr ? output + offset : nullptr;
    for (int64_t c = 0; c < shape_.classes; ++c) {
      for (int64_t k = 0; k < width; ++k) {
        const float power = std::exp(scores[c * stride + k] - highest[k]);
        sums[k] += static_cast<double>(power);
        if (p != nullptr) p[c * stride + k] = power;
      }
    }
    if (p != nullptr) divide(p, output == nullptr ? nullptr : output + offset, sums, width);
    if (has_targets_) return target_loss(pass, outer, begin, width, highest, sums);
    double loss = 0;
    for (int64_t k = 0; k < width; ++k) {
      const int64_t label = labels_.of(pass, outer * shape_.inner + begin + k);
      if (label < 0) continue;
      loss += static_cast<double>(highest[k]) + std::log(sums[k]) -
              static_cast<double>(scores[label * stride + k]);
    }
    return loss;
  }

  [[nodiscard]] bool holds_sample(const Pass& pass, int64_t outer) const {
    return pass.holds_sample(outer * shape_.inner / shape_.labels_of_row());
  }
  void check_targets(const Pass& pass) const {
    const float* targets = pass.input(1);
    const int64_t size = shape_.classes * shape_.inner;
    for (int64_t outer = 0; outer < shape_.outer; ++outer, targets += size) {
      if (!holds_sample(pass, outer)) continue;
      const float* wrong = std::find_if_not(targets, targets + size,
                                            [](float t) { return t >= 0 && std::isfinite(t); });
      if (wrong == targets + size) continue;
      throw failed("target ", *wrong, " of row ", outer * shape_.inner / shape_.labels_of_row(),
                   " is not a number of at least 0");
    }
  }

  // The loss of `width` positions from `begin` on, given the highest score and the sum of powers of
  // each.
  double target_loss(const Pass& pass, int64_t outer, int64_t begin, int64_t width,
                     const float* highest, const double* sums) const {
    if (!holds_sample(pass, outer)) return 0;
    const int64_t offset = outer * shape_.classes * shape_.inner + begin;
    double logarithms[widest], loss = 0;
    for (int64_t k = 0; k < width; ++k) {
      logarithms[k] = static_cast<double>(highest[k]) + std::log(sums[k]);
    }
    for (int64_t c = 0; c < shape_.classes; ++c) {
      const float* scores = pass.input(0) + offset + c * shape_.inner;
      const float* targets = pass.input(1) + offset + c * shape_.inner;
      for (int64_t k = 0; k < width; ++k) {
        // The score of a class with target 0 is not used, even if it is infinite.
        if (targets[k] == 0) continue;
        loss += static_cast<double>(targets[k]) * (logarithms[k] - static_cast<double>(scores[k]));
      }
    }
    return loss;
  }

  // dx = sum of the position's targets * probability - target.
  void target_gradient(const Pass& pass, int64_t outer, float factor, const float* p,
                       float* gradient) const {
    const int64_t stride = shape_.inner, size = shape_.classes * stride;
    const float* targets = pass.input(1) + outer * size;
    if (!holds_sample(pass, outer)) {
      std::fill_n(gradient, size, 0.0F);
      return;
    }
    for (int64_t i = 0; i < stride; ++i) {
      float sum = 0;
      for (int64_t k = i; k < size; k += stride) sum += targets[k];
      for (int64_t k = i; k < size; k += stride) gradient[k] = factor * (sum * p[k] - targets[k]);
    }
  }

  void divide(float* p, float* output, const double* sums, int64_t width) const {
    float factors[widest];
    for (int64_t k = 0; k < width; ++k) factors[k] = static_cast<float>(1 / sums[k]);
    for (int64_t c = 0; c < shape_.classes; ++c) {
      float* row = p + c * shape_.inner;
      for (int64_t k = 0; k < width; ++k) row[k] *= factors[k];
      if (output != nullptr && output != p) std::copy_n(row, width, output + c * shape_.inner);
    }
  }

  ScoreShape shape_;
  int64_t width_, tiles_;
  size_t outputs_;
  bool has_targets_;
  Labels labels_;
  Normaliser normaliser_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "softmax_with_loss", "1.0")
      .layer<SoftmaxWithLoss>()
      .kernel<SoftmaxWithLoss, SoftmaxWithLossCpu>("cpu")
      .table();
}
