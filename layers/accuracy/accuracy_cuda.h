// Accuracy on NVIDIA GPUs: a team for each label counts the classes that score at least as high as
// the true one.
#pragma once

#include "layers/accuracy/accuracy.h"
#include "layers/common/rows_cuda.h"

namespace tandem::layers {

// 1 for each right label, 0 for a wrong one and for one that does not count.
struct AccuracyRight {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t index) const {
    const ScoreShape& shape = labels.shape();
    const int64_t label = labels.of(index);
    const float* own = scores + labels.first(index);
    const float true_score = own[(label < 0 ? 0 : label) * shape.inner];
    double others = 0;
    for (int64_t c = team.rank(); c < shape.classes; c += team.size()) {
      others += !(own[c * shape.inner] < true_score) ? 1 : 0;
    }
    others = team.sum(others) - 1;
    if (team.rank() != 0) return;
    const bool is_right = true_score == true_score && others < static_cast<double>(top);
    right[index] = label == DeviceLabels::no_class ? static_cast<double>(NAN)
                   : label >= 0 && is_right        ? 1
                                                   : 0;
  }
  DeviceLabels labels;
  int64_t top;
  const float* scores;
  double* right;
};

// The number of labels of a class that count, and how many of those are right.
struct AccuracyOfClass {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t c) const {
    double counted = 0, hits = 0;
    const int64_t count = labels.shape().labels();
    for (int64_t index = team.rank(); index < count; index += team.size()) {
      if (labels.of(index) != c) continue;
      counted += 1;
      hits += right[index];
    }
    counted = team.sum(counted);
    hits = team.sum(hits);
    if (team.rank() != 0) return;
    all_of_class[c] = static_cast<float>(counted);
    right_of_class[c] = static_cast<float>(hits);
  }
  DeviceLabels labels;
  const double* right;
  float *all_of_class, *right_of_class;
};

struct AccuracyTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t index) const { return right[index]; }
  const double* right;
};
struct AccuracyStore {
  TANDEM_HOST_DEVICE void operator()(double sum) const {
    const double all = counted != nullptr ? static_cast<double>(*counted)
                                          : static_cast<double>(*samples) * labels_of_row;
    *accuracy = sum == 0 ? 0.0F : static_cast<float>(sum / all);
  }
  const float *counted, *samples;
  double labels_of_row;
  float* accuracy;
};
struct AccuracyByClass {
  TANDEM_HOST_DEVICE void operator()(int64_t c) const {
    accuracy[c] = all[c] == 0 ? 0.0F : right[c] / all[c];
  }
  const float *all, *right;
  float* accuracy;
};

class AccuracyCuda : public sdk::Needs {
 public:
  AccuracyCuda(const sdk::Binding& binding, const sdk::Call&)
      : labels_(ScoreShape(binding.input(0).shape, binding.attributes.integer("axis")),
                binding.attributes),
        top_(binding.attributes.integer("top_k")),
        by_class_(binding.output_count() == 2),
        total_(labels_.shape.labels()) {
    scratch_bytes = labels_.shape.labels() * 8 + total_.scratch_bytes();
    statistics = Accuracy::statistics(binding.attributes, binding.output_count(), labels_.shape);
  }

  void forward_statistics(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const DeviceLabels labels(labels_, pass);
    auto* right = pass.scratch<double>().get();
    const int64_t classes = labels_.shape.classes;
    total_.run(call, CountedLabel{labels}, right + labels_.shape.labels(),
               StoreStatistic{pass.statistics().get()});
    if (!by_class_) return;
    find_right(call, pass);
    cuda::for_teams(call, {classes, labels_.shape.labels()},
                    AccuracyOfClass{labels, right, pass.statistics().get() + 1,
                                    pass.statistics().get() + 1 + classes});
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const ScoreShape& shape = labels_.shape;
    auto* right = pass.scratch<double>().get();
    find_right(call, pass);
    total_.run(
        call, AccuracyTerm{right}, right + shape.labels(),
        AccuracyStore{statistics > 0 ? pass.statistics().get() : nullptr, pass.raw.normaliser,
                      static_cast<double>(shape.labels_of_row()), pass.output(0).get()});
    if (!by_class_) return;
    const float* all = pass.statistics().get() + 1;
    cuda::for_each(call, shape.classes,
                   AccuracyByClass{all, all + shape.classes, pass.output(1).get()});
  }

 private:
  void find_right(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const ScoreShape& shape = labels_.shape;
    cuda::for_teams(call, {shape.labels(), shape.classes, shape.inner > 1},
                    AccuracyRight{DeviceLabels(labels_, pass), top_, pass.input(0).get(),
                                  pass.scratch<double>().get()});
  }

  LabelSettings labels_;
  int64_t top_;
  bool by_class_;
  cuda::Total total_;
};

}  // namespace tandem::layers
