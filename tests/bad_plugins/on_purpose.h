// Layers that differ on purpose, as their types say: gradients that are no derivatives, testing
// that is not training. Those without a slip are right; each of the others is wrong besides.
#pragma once

#include <cmath>
#include <vector>

#include "plugins/random.h"
#include "plugins/sdk.h"

namespace tandem::test {

enum class Purpose { Reversal, StraightSign, BinaryScale, RowsDropped };
enum class PurposeSlip { None, MixesRows, ForgetsToAdd, DrawsInTesting };

constexpr const char* purpose_name(Purpose purpose, PurposeSlip slip) {
  switch (slip) {
    case PurposeSlip::MixesRows:
      return "mistake.ReversesFirstRow";
    case PurposeSlip::ForgetsToAdd:
      return "mistake.StraightButNotAdded";
    case PurposeSlip::DrawsInTesting:
      return "mistake.DropsRowsInTesting";
    case PurposeSlip::None:
      break;
  }
  return purpose == Purpose::Reversal       ? "right.Reversal"
         : purpose == Purpose::StraightSign ? "right.StraightSign"
         : purpose == Purpose::BinaryScale  ? "right.BinaryScale"
                                            : "right.RowsDropped";
}

template <Purpose p, PurposeSlip slip = PurposeSlip::None>
struct OnPurpose : sdk::LayerType {
  const char* name() const override { return purpose_name(p, slip); }
  const char* help() const override { return "differs on purpose, as its type says"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_INPUTS |
           (p == Purpose::RowsDropped ? TANDEM_RANDOM | TANDEM_TESTS_OTHERWISE
                                      : TANDEM_NO_DERIVATIVE);
  }
  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    if (p != Purpose::BinaryScale) return {};
    return {{.name = "scale", .shape = {query.input(0).c, 1, 1, 1}, .initial = 0.5}};
  }
};

// The sign; a NaN stays.
inline float sign_of(float x) {
  return x > 0 ? 1.0F : x < 0 ? -1.0F : x;
}

// A reversed gradient; a sign whose gradient goes straight through where |x| < 1; a scale of which
// the sign counts, with the gradient of the scale itself; rows that are dropped, or left as they
// are, in training.
template <Purpose p, PurposeSlip slip>
class OnPurposeBase {
 public:
  OnPurposeBase(const sdk::Binding& binding, const sdk::Call&)
      : shape_(binding.input(0).shape),
        begin_(binding.raw.batch_begin),
        layer_(binding.raw.layer_index),
        draws_(binding.training() || slip == PurposeSlip::DrawsInTesting) {
    size_ = sdk::count(shape_) / shape_.n;
  }
  void forward(const sdk::Call&, const sdk::Pass& pass) const {
    each(pass, [&](int64_t i, int64_t c, float keeps) {
      const float x = pass.input(0)[i];
      pass.output(0)[i] = p == Purpose::StraightSign  ? sign_of(x)
                          : p == Purpose::BinaryScale ? sign_of(pass.weight(0)[c]) * x
                                                      : keeps * x;
    });
  }
  void backward_data(const sdk::Call&, const sdk::Pass& pass) const {
    each(pass, [&](int64_t i, int64_t c, float keeps) {
      const float x = pass.input(0)[i], dy = pass.output_gradient(0)[i];
      float& dx = pass.input_gradient(0)[i];
      dx = p == Purpose::Reversal       ? -0.5F * dy
           : p == Purpose::StraightSign ? (x > -1 && x < 1 ? dy : 0 * dy)
           : p == Purpose::BinaryScale  ? sign_of(pass.weight(0)[c]) * dy
                                        : keeps * dy;
      if (slip == PurposeSlip::MixesRows) dx -= 0.1F * pass.input(0)[i % size_];
    });
  }
  void add_weight_gradients(const sdk::Pass& pass) const {
    std::vector<double> sums(static_cast<size_t>(shape_.c));
    each(pass, [&](int64_t i, int64_t c, float) {
      sums[static_cast<size_t>(c)] += double{pass.input(0)[i]} * double{pass.output_gradient(0)[i]};
    });
    const bool adds = pass.accumulate() && slip != PurposeSlip::ForgetsToAdd;
    for (size_t c = 0; c < sums.size(); ++c) {
      float& gradient = pass.weight_gradient(0)[c];
      gradient = static_cast<float>(sums[c] + (adds ? double{gradient} : 0));
    }
  }

 private:
  template <class Body>
  void each(const sdk::Pass& pass, const Body& body) const {
    const int64_t area = shape_.h * shape_.w;
    for (int64_t row = 0; row < shape_.n; ++row) {
      const float keeps = p == Purpose::RowsDropped && draws_ ? drawn(pass, row) : 1.0F;
      for (int64_t k = 0; k < size_; ++k) body(row * size_ + k, k / area, keeps);
    }
  }
  [[nodiscard]] float drawn(const sdk::Pass& pass, int64_t row) const {
    const auto position = static_cast<uint64_t>(begin_ + pass.step().first_row + row);
    const tandem_random4 block =
        tandem_random_block(pass.step().seed, pass.step().step, layer_, position, 0);
    return tandem_uniform(block.value[0]) < 0.5F ? 0.0F : 1.0F;
  }
  sdk::Shape shape_;
  int64_t begin_, size_ = 1;
  uint32_t layer_;
  bool draws_;
};

template <Purpose p, PurposeSlip slip = PurposeSlip::None>
class OnPurposeCpu : public OnPurposeBase<p, slip> {
 public:
  using OnPurposeBase<p, slip>::OnPurposeBase;
};
template <PurposeSlip slip>
class OnPurposeCpu<Purpose::BinaryScale, slip> : public OnPurposeBase<Purpose::BinaryScale, slip> {
 public:
  using OnPurposeBase<Purpose::BinaryScale, slip>::OnPurposeBase;
  void backward_weights(const sdk::Call&, const sdk::Pass& pass) const {
    this->add_weight_gradients(pass);
  }
};

template <Purpose p, PurposeSlip slip = PurposeSlip::None>
void add_on_purpose(sdk::Plugin& plugin) {
  plugin.layer<OnPurpose<p, slip>>().template kernel<OnPurpose<p, slip>, OnPurposeCpu<p, slip>>(
      "cpu");
}

}  // namespace tandem::test
