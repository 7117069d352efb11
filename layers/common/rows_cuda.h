// Which labels count (rows.h) and the divisor of a loss (loss.h), in device code. A kernel on a GPU
// cannot report an invalid label. It makes the result NaN instead, so that the update is skipped
// and the run stops.
#pragma once

#include <cmath>

#include "layers/common/loss.h"
#include "layers/common/rows.h"
#include "plugins/cuda/sums.h"

namespace tandem::layers {

// Rows that hold a sample.
struct SampleRows {
  explicit SampleRows(const sdk::DevicePass& pass) : labels(pass.row_labels().get()) {}
  [[nodiscard]] TANDEM_HOST_DEVICE bool holds_sample(int64_t row) const {
    return labels == nullptr || !(labels[row] < 0);
  }
  const float* labels;
};

// The settings of Labels (rows.h).
struct LabelSettings {
  explicit LabelSettings(const ScoreShape& label_shape) : shape(label_shape) {}
  // With the layer's ignore_label, if it is set.
  LabelSettings(const ScoreShape& label_shape, const sdk::Attributes& attributes)
      : shape(label_shape),
        ignores(attributes.is_set("ignore_label")),
        ignored(ignores ? static_cast<float>(attributes.integer("ignore_label")) : 0) {}
  ScoreShape shape;
  bool ignores = false;
  float ignored = 0;
};

class DeviceLabels {
 public:
  static constexpr int64_t none = -1;      // does not count
  static constexpr int64_t no_class = -2;  // is not a whole number below the number of classes

  DeviceLabels(const LabelSettings& settings, const sdk::DevicePass& pass)
      : settings_(settings),
        labels_of_row_(settings.shape.labels_of_row()),
        inner_(settings.shape.inner),
        classes_(settings.shape.classes),
        labels_(pass.input(1).get()),
        rows_(pass) {}

  // The class of label `index`, or one of the two constants.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t of(int64_t index) const {
    const float label = labels_[index];
    const bool ignored = settings_.ignores && label == settings_.ignored;
    const int64_t row = cuda::quotient(index, labels_of_row_);
    if (label < 0 || ignored || !rows_.holds_sample(row)) return none;
    const bool is_class = label < static_cast<float>(settings_.shape.classes) &&
                          static_cast<float>(static_cast<int64_t>(label)) == label;
    return is_class ? static_cast<int64_t>(label) : no_class;
  }
  // The index of the first score of label `index`; the next is `inner` away.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t first(int64_t index) const {
    const int64_t outer = cuda::quotient(index, inner_);
    return outer * classes_ * inner_ + (index - outer * inner_);
  }
  // The label and class of the score at index `i`.
  struct Score {
    int64_t label;  // index of the label
    int64_t of_class;
  };
  [[nodiscard]] TANDEM_HOST_DEVICE Score score(int64_t i) const {
    const int64_t line = cuda::quotient(i, inner_), outer = cuda::quotient(line, classes_);
    return {outer * inner_ + (i - line * inner_), line - outer * classes_};
  }
  [[nodiscard]] TANDEM_HOST_DEVICE const ScoreShape& shape() const { return settings_.shape; }

 private:
  LabelSettings settings_;
  cuda::Divisor labels_of_row_, inner_, classes_;
  const float* labels_;
  SampleRows rows_;
};

// 1 for a label that counts.
struct CountedLabel {
  TANDEM_HOST_DEVICE double operator()(int64_t index) const {
    const int64_t label = labels.of(index);
    return label == DeviceLabels::no_class ? static_cast<double>(NAN) : label >= 0 ? 1.0 : 0.0;
  }
  DeviceLabels labels;
};
struct StoreStatistic {
  TANDEM_HOST_DEVICE void operator()(double sum) const { *statistic = static_cast<float>(sum); }
  float* statistic;
};

// The divisor of a loss's sum; at least 1, so that the loss of a batch in which nothing counts is
// 0.
class DeviceNormaliser {
 public:
  // The number of samples of the whole batch.
  explicit DeviceNormaliser(const sdk::DevicePass& pass) : samples_(pass.raw.normaliser) {}
  // As Normaliser in loss.h; `labels`: per sample.
  DeviceNormaliser(const sdk::Attributes& attributes, int64_t labels)
      : how_(normalization_of(attributes)),
        counts_(counts_labels(attributes)),
        labels_(static_cast<double>(labels)) {}

  [[nodiscard]] DeviceNormaliser of(const sdk::DevicePass& pass) const {
    DeviceNormaliser result = *this;
    result.samples_ = pass.raw.normaliser;
    result.counted_ = pass.raw.statistics;
    return result;
  }
  [[nodiscard]] bool counts() const { return counts_; }

  [[nodiscard]] TANDEM_HOST_DEVICE double divisor() const {
    const double value = unbounded();
    return value > 1 ? value : 1;
  }

 private:
  [[nodiscard]] TANDEM_HOST_DEVICE double unbounded() const {
    const auto samples = static_cast<double>(*samples_);
    if (how_ == Normalization::none) return 1;
    if (how_ == Normalization::batch_size) return samples;
    if (how_ == Normalization::valid && counts_) return static_cast<double>(*counted_);
    return samples * labels_;
  }

  Normalization how_ = Normalization::batch_size;
  bool counts_ = false;
  double labels_ = 1;
  const float *samples_ = nullptr, *counted_ = nullptr;
};

// The end of a loss's forward pass: its sum times `factor`, normalized. It also stores the divisor
// if `saved` is not nullptr.
struct StoreLoss {
  TANDEM_HOST_DEVICE void operator()(double sum) const {
    const double divisor = normaliser.divisor();
    if (saved != nullptr) *saved = static_cast<float>(divisor);
    *loss = static_cast<float>(factor * sum / divisor);
  }
  DeviceNormaliser normaliser;
  double factor;
  float *loss, *saved;
};

}  // namespace tandem::layers
