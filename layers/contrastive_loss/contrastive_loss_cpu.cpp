// ContrastiveLoss on the cpu, in any layout that both features have.
#include "layers/contrastive_loss/contrastive_loss.h"

#include <cmath>

#include "layers/common/row_sums.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::ContrastiveLoss;
using tandem::layers::for_rows;
using tandem::layers::sum_of;

class ContrastiveLossCpu : public Needs {
 public:
  ContrastiveLossCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        size_(count(binding.input(0).shape) / rows_),
        margin_(binding.attributes.number("margin")),
        legacy_(binding.attributes.boolean("legacy_version")) {
    scratch_bytes = tandem::layers::row_sum_bytes;
  }

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const double sum = sum_of(call.threads, rows_, size_, pass.scratch<double>(), [&](int64_t row) {
      return pass.holds_sample(row) ? loss_of(pass, row) : 0.0;
    });
    *pass.output(0) = static_cast<float>(sum / (2 * divisor(pass)));
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const double factor = static_cast<double>(pass.output_gradient(0)[0]) / divisor(pass);
    for_rows(call.threads, rows_, size_, [&](int64_t row) {
      const auto slope =
          static_cast<float>(pass.holds_sample(row) ? factor * slope_of(pass, row) : 0.0);
      for (const size_t input : {size_t{0}, size_t{1}}) {
        if (pass.input_gradient(input) == nullptr) continue;
        const float *own = pass.input(input) + row * size_,
                    *other = pass.input(1 - input) + row * size_;
        float* gradient = pass.input_gradient(input) + row * size_;
        for (int64_t i = 0; i < size_; ++i) gradient[i] = slope * (own[i] - other[i]);
      }
    });
    // The flag has no gradient.
    if (pass.input_gradient(2) != nullptr) std::fill_n(pass.input_gradient(2).data(), rows_, 0.0F);
  }

 private:
  [[nodiscard]] double squared_distance(const Pass& pass, int64_t row) const {
    return tandem::layers::squared_distance(size_, pass.input(0) + row * size_,
                                            pass.input(1) + row * size_);
  }
  [[nodiscard]] static bool alike(const Pass& pass, int64_t row) {
    return static_cast<int64_t>(pass.input(2)[row]) != 0;
  }
  [[nodiscard]] double loss_of(const Pass& pass, int64_t row) const {
    const double squared = squared_distance(pass, row);
    if (alike(pass, row)) return squared;
    const double missing = margin_ - (legacy_ ? squared : std::sqrt(squared));
    if (missing < 0) return 0;
    return legacy_ ? missing : missing * missing;
  }
  // The derivative of half the loss by a, per unit of a - b.
  [[nodiscard]] double slope_of(const Pass& pass, int64_t row) const {
    if (alike(pass, row)) return 1;
    const double squared = squared_distance(pass, row);
    if (legacy_) return squared < margin_ ? -1 : 0;
    const double distance = std::sqrt(squared);
    return distance > 0 && distance < margin_ ? -(margin_ - distance) / distance : 0;
  }
  static double divisor(const Pass& pass) {
    return std::max(1.0, static_cast<double>(pass.normaliser()));
  }

  int64_t rows_, size_;
  double margin_;
  bool legacy_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "contrastive_loss", "1.0")
      .layer<ContrastiveLoss>()
      .kernel<ContrastiveLoss, ContrastiveLossCpu>("cpu")
      .table();
}
