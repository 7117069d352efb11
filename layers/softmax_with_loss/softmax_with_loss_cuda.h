// SoftmaxWithLoss on NVIDIA GPUs: a team for each label. It takes the logarithm of the sum, not of
// a probability, so that the loss of a row with a very small probability is exact, too.
#pragma once

#include "layers/common/rows_cuda.h"
#include "layers/softmax/softmax_cuda.h"
#include "layers/softmax_with_loss/softmax_with_loss.h"

namespace tandem::layers {

// The loss of each label. The probabilities are written to `saved` and `output` if these are
// wanted.
struct SoftmaxLosses {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t index) const {
    const int64_t first = labels.first(index);
    const ScoresOfGroup group = store_probabilities(team, first);
    if (team.rank() == 0) losses[index] = loss(index, first, group);
  }
  template <class Team>
  TANDEM_HOST_DEVICE ScoresOfGroup store_probabilities(const Team& team, int64_t first) const {
    const ScoreShape& shape = labels.shape();
    const ScoresOfGroup group = scores_of_group(team, scores + first, shape.classes, shape.inner);
    if (saved != nullptr || output != nullptr) {
      const auto factor = static_cast<float>(1 / group.sum);
      for (int64_t c = team.rank(); c < shape.classes; c += team.size()) {
        const int64_t i = first + c * shape.inner;
        const float probability = expf(scores[i] - group.highest) * factor;
        if (saved != nullptr) saved[i] = probability;
        if (output != nullptr) output[i] = probability;
      }
    }
    return group;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE double loss(int64_t index, int64_t first,
                                               const ScoresOfGroup& group) const {
    const int64_t label = labels.of(index);
    if (label == DeviceLabels::no_class) return static_cast<double>(NAN);
    if (label < 0) return 0;
    return static_cast<double>(group.highest) + log(group.sum) -
           static_cast<double>(scores[first + label * labels.shape().inner]);
  }
  DeviceLabels labels;
  const float* scores;
  float *saved, *output;  // nullptr: not wanted
  double* losses;
};
// The same with a target for each class: the sum of target (log sum - score). A target that is
// negative or NaN makes the loss NaN.
struct SoftmaxTargetLosses {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t index) const {
    const ScoreShape& shape = softmax.labels.shape();
    const int64_t first = softmax.labels.first(index);
    const ScoresOfGroup group = softmax.store_probabilities(team, first);
    const double logarithm = static_cast<double>(group.highest) + log(group.sum);
    double loss = 0;
    for (int64_t c = team.rank(); c < shape.classes; c += team.size()) {
      const int64_t i = first + c * shape.inner;
      const float target = targets[i];
      // The score of a class with target 0 is not used, even if it is infinite.
      if (target == 0) continue;
      const bool is_target = target > 0 && target < INFINITY;
      loss += is_target ? static_cast<double>(target) *
                              (logarithm - static_cast<double>(softmax.scores[i]))
                        : static_cast<double>(NAN);
    }
    loss = team.sum(loss);
    const int64_t row = cuda::quotient(index, shape.labels_of_row());
    if (team.rank() == 0) softmax.losses[index] = rows.holds_sample(row) ? loss : 0;
  }
  SoftmaxLosses softmax;
  SampleRows rows;
  const float* targets;
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

// The gradient of a position: factor (sum of targets * probability - target).
struct SoftmaxTargetGradient {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t index) const {
    const ScoreShape& shape = labels.shape();
    const int64_t first = labels.first(index);
    double sum = 0;
    for (int64_t c = team.rank(); c < shape.classes; c += team.size()) {
      sum += static_cast<double>(targets[first + c * shape.inner]);
    }
    const auto whole = static_cast<float>(team.sum(sum));
    const float factor = *loss_weight / *divisor;
    const bool counts = rows.holds_sample(cuda::quotient(index, shape.labels_of_row()));
    for (int64_t c = team.rank(); c < shape.classes; c += team.size()) {
      const int64_t i = first + c * shape.inner;
      gradient[i] = counts ? factor * (whole * probabilities[i] - targets[i]) : 0.0F;
    }
  }
  DeviceLabels labels;
  SampleRows rows;
  const float *loss_weight, *divisor, *probabilities, *targets;
  float* gradient;
};

class SoftmaxWithLossCuda : public sdk::Needs {
 public:
  SoftmaxWithLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : labels_(ScoreShape(binding.input(0).shape, binding.attributes.integer("axis")),
                binding.attributes),
        has_targets_(reads_targets(binding.input(0).shape, binding.input(1).shape,
                                   binding.attributes.integer("axis"))),
        elements_(sdk::count(binding.input(0).shape)),
        outputs_(binding.output_count()),
        normaliser_(binding.attributes, labels_.shape.labels_of_row()),
        total_(labels_.shape.labels()) {
    scratch_bytes = labels_.shape.labels() * 8 + total_.scratch_bytes();
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = (header + elements_) * 4;
    statistics = normaliser_.counts() ? 1 : 0;
  }

  void forward_statistics(const sdk::Call& call, const sdk::DevicePass& pass) const {
    total_.run(call, CountedLabel{DeviceLabels(labels_, pass)}, pass.scratch<double>().get(),
               StoreStatistic{pass.statistics().get()});
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const ScoreShape& shape = labels_.shape;
    auto* losses = pass.scratch<double>().get();
    const bool saves = saved_bytes > 0;
    const SoftmaxLosses body{DeviceLabels(labels_, pass), pass.input(0).get(),
                             saves ? pass.saved().get() + header : nullptr,
                             outputs_ == 2 ? pass.output(1).get() : nullptr, losses};
    if (has_targets_) {
      cuda::for_teams(call, teams(),
                      SoftmaxTargetLosses{body, SampleRows(pass), pass.input(1).get()});
    } else {
      cuda::for_teams(call, teams(), body);
    }
    total_.run(call, SoftmaxLossTerm{losses}, losses + shape.labels(),
               StoreLoss{normaliser_.of(pass), 1, pass.output(0).get(),
                         saves ? pass.saved().get() : nullptr});
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    if (has_targets_) {
      cuda::for_teams(call, teams(),
                      SoftmaxTargetGradient{DeviceLabels(labels_, pass), SampleRows(pass),
                                            pass.output_gradient(0).get(), pass.saved().get(),
                                            pass.saved().get() + header, pass.input(1).get(),
                                            pass.input_gradient(0).get()});
      return;
    }
    cuda::for_each(call, elements_,
                   SoftmaxLossGradient{DeviceLabels(labels_, pass), pass.output_gradient(0).get(),
                                       pass.saved().get(), pass.saved().get() + header,
                                       pass.input_gradient(0).get()});
  }

 private:
  [[nodiscard]] cuda::Teams teams() const {
    return {labels_.shape.labels(), labels_.shape.classes, labels_.shape.inner > 1};
  }

  static constexpr int64_t header = 16;  // floats of saved memory before the probabilities

  LabelSettings labels_;
  bool has_targets_;
  int64_t elements_;
  size_t outputs_;
  DeviceNormaliser normaliser_;
  cuda::Total total_;
};

}  // namespace tandem::layers
