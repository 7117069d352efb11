// ContrastiveLoss on NVIDIA GPUs: a team for each pair; see the cpu kernel for the formulas.
#pragma once

#include "layers/common/rows_cuda.h"
#include "layers/contrastive_loss/contrastive_loss.h"

namespace tandem::layers {

struct ContrastivePairs {
  template <class Team>
  TANDEM_HOST_DEVICE double squared_distance(const Team& team, int64_t row) const {
    double sum = 0;
    for (int64_t i = row * size + team.rank(); i < (row + 1) * size; i += team.size()) {
      const double distance = static_cast<double>(a[i]) - static_cast<double>(b[i]);
      sum += distance * distance;
    }
    return team.sum(sum);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE bool are_alike(int64_t row) const {
    return static_cast<int64_t>(alike[row]) != 0;
  }
  SampleRows rows;
  int64_t size;
  double margin;
  bool legacy;
  const float *a, *b, *alike;
};

struct ContrastiveLosses {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t row) const {
    const double squared = pairs.squared_distance(team, row);
    if (team.rank() != 0) return;
    losses[row] = pairs.rows.holds_sample(row) ? loss(row, squared) : 0;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE double loss(int64_t row, double squared) const {
    if (pairs.are_alike(row)) return squared;
    const double missing = pairs.margin - (pairs.legacy ? squared : sqrt(squared));
    if (missing < 0) return 0;
    return pairs.legacy ? missing : missing * missing;
  }
  ContrastivePairs pairs;
  double* losses;
};
struct ContrastiveTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t row) const { return losses[row]; }
  const double* losses;
};

struct ContrastiveGradient {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t row) const {
    const double squared = pairs.squared_distance(team, row);
    const double factor = static_cast<double>(*loss_weight) / normaliser.divisor();
    const auto slope =
        static_cast<float>(pairs.rows.holds_sample(row) ? factor * slope_of(row, squared) : 0);
    for (int64_t i = row * pairs.size + team.rank(); i < (row + 1) * pairs.size; i += team.size()) {
      const float distance = pairs.a[i] - pairs.b[i];
      if (da != nullptr) da[i] = slope * distance;
      if (db != nullptr) db[i] = slope * -distance;
    }
  }
  // The derivative of half the loss by a, per unit of a - b.
  [[nodiscard]] TANDEM_HOST_DEVICE double slope_of(int64_t row, double squared) const {
    if (pairs.are_alike(row)) return 1;
    if (pairs.legacy) return squared < pairs.margin ? -1 : 0;
    const double distance = sqrt(squared);
    const bool pushed = distance > 0 && distance < pairs.margin;
    return pushed ? -(pairs.margin - distance) / distance : 0;
  }
  ContrastivePairs pairs;
  DeviceNormaliser normaliser;
  const float* loss_weight;
  float *da, *db;
};

class ContrastiveLossCuda : public sdk::Needs {
 public:
  ContrastiveLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : rows_(binding.input(0).shape.n),
        size_(sdk::count(binding.input(0).shape) / rows_),
        margin_(binding.attributes.number("margin")),
        legacy_(binding.attributes.boolean("legacy_version")),
        total_(rows_) {
    scratch_bytes = rows_ * 8 + total_.scratch_bytes();
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    auto* losses = pass.scratch<double>().get();
    cuda::for_teams(call, {rows_, size_}, ContrastiveLosses{pairs(pass), losses});
    total_.run(call, ContrastiveTerm{losses}, losses + rows_,
               StoreLoss{DeviceNormaliser(pass), 0.5, pass.output(0).get(), nullptr});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_teams(
        call, {rows_, size_},
        ContrastiveGradient{pairs(pass), DeviceNormaliser(pass), pass.output_gradient(0).get(),
                            pass.input_gradient(0).get(), pass.input_gradient(1).get()});
    // The flag has no gradient.
    if (pass.input_gradient(2).get() != nullptr)
      cuda::clear(call, pass.input_gradient(2).get(), rows_);
  }

 private:
  [[nodiscard]] ContrastivePairs pairs(const sdk::DevicePass& pass) const {
    return {SampleRows(pass),   size_, margin_, legacy_, pass.input(0).get(), pass.input(1).get(),
            pass.input(2).get()};
  }

  int64_t rows_, size_;
  double margin_;
  bool legacy_;
  cuda::Total total_;
};

}  // namespace tandem::layers
