// SoftmaxWithLoss on NVIDIA GPUs: a team for each label. The logarithm is taken of the sum, not of
// a probability, so that a hopeless row has its true loss.
#pragma once

#include "layers/rows_cuda.h"
#include "layers/softmax/softmax_cuda.h"
#include "layers/softmax_with_loss/softmax_with_loss.h"

namespace tandem::layers {

// The loss of each label; its probabilities go where they are wanted.
struct SoftmaxLosses {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t index) const {
    const Places& places = labels.places();
    const int64_t first = labels.first(index);
    const ScoresOfGroup group = scores_of_group(team, scores + first, places.classes, places.inner);
    if (saved != nullptr || output != nullptr) {
      const auto factor = static_cast<float>(1 / group.sum);
      for (int64_t c = team.rank(); c < places.classes; c += team.size()) {
        const int64_t i = first + c * places.inner;
        const float probability = expf(scores[i] - group.highest) * factor;
        if (saved != nullptr) saved[i] = probability;
        if (output != nullptr) output[i] = probability;
      }
    }
    if (team.rank() == 0) losses[index] = loss(index, first, group);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE double loss(int64_t index, int64_t first,
                                               const ScoresOfGroup& group) const {
    const int64_t label = labels.of(index);
    if (label == DeviceLabels::no_class) return static_cast<double>(NAN);
    if (label < 0) return 0;
    return static_cast<double>(group.highest) + log(group.sum) -
           static_cast<double>(scores[first + label * labels.places().inner]);
  }
  DeviceLabels labels;
  const float* scores;
  float *saved, *output;  // nullptr: not wanted
  double* losses;
};
struct SoftmaxLossTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t index) const { return losses[index]; }
  const double* losses;
};

struct SoftmaxLossGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const DeviceLabels::Score here = labels.score(i);
    const int64_t label = labels.of(here.label);
    const float factor = *loss_weight / *divisor;
    const bool is_true = label == here.of_class;
    gradient[i] = label < 0 ? 0.0F : factor * (probabilities[i] - (is_true ? 1.0F : 0.0F));
  }
  DeviceLabels labels;
  const float *loss_weight, *divisor, *probabilities;
  float* gradient;
};

class SoftmaxWithLossCuda : public sdk::Needs {
 public:
  SoftmaxWithLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : labels_(Places(binding.input(0).shape, binding.attributes.integer("axis")),
                binding.attributes),
        elements_(sdk::count(binding.input(0).shape)),
        outputs_(binding.output_count()),
        normaliser_(binding.attributes, labels_.places.labels_of_row()),
        total_(labels_.places.labels()) {
    if (reads_targets(binding.input(0).shape, binding.input(1).shape,
                      binding.attributes.integer("axis"))) {
      throw sdk::unsupported(
          "a target for each class (mixup, CutMix, class weights) is not there on cuda yet: train "
          "with --devices cpu, or without them");
    }
    scratch_bytes = labels_.places.labels() * 8 + total_.scratch_bytes();
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = (header + elements_) * 4;
    statistics = normaliser_.counts() ? 1 : 0;
  }

  void forward_statistics(const sdk::Call& call, const sdk::Pass& pass) const {
    total_.run(call, CountedLabel{DeviceLabels(labels_, pass)}, pass.scratch<double>(),
               StoreStatistic{pass.statistics()});
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    const Places& places = labels_.places;
    auto* losses = pass.scratch<double>();
    const bool saves = saved_bytes > 0;
    cuda::for_teams(call, {places.labels(), places.classes, places.inner > 1},
                    SoftmaxLosses{DeviceLabels(labels_, pass), pass.input(0),
                                  saves ? pass.saved() + header : nullptr,
                                  outputs_ == 2 ? pass.output(1) : nullptr, losses});
    total_.run(call, SoftmaxLossTerm{losses}, losses + places.labels(),
               StoreLoss{normaliser_.of(pass), 1, pass.output(0), saves ? pass.saved() : nullptr});
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::for_each(
        call, elements_,
        SoftmaxLossGradient{DeviceLabels(labels_, pass), pass.output_gradient(0), pass.saved(),
                            pass.saved() + header, pass.input_gradient(0)});
  }

 private:
  static constexpr int64_t header = 16;  // floats of saved memory before the probabilities

  LabelSettings labels_;
  int64_t elements_;
  size_t outputs_;
  DeviceNormaliser normaliser_;
  cuda::Total total_;
};

}  // namespace tandem::layers
