#include "core/data/dataset_statistics.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/data/bad_samples.h"

namespace tandem {

std::vector<double> channel_means(const Dataset& dataset, int64_t limit) {
  const Shape shape = dataset.shape();
  const int64_t count = std::clamp<int64_t>(limit, 1, dataset.size());
  const int64_t plane = shape.h * shape.w;
  std::vector<float> pixels(size_t(element_count(shape)));
  std::vector<double> means(size_t(shape.c), 0.0);
  int64_t good = 0;
  std::vector<BadSample> bad;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = i * dataset.size() / count;
    float label = 0;
    std::string reason;
    if (dataset.get(index, 0, pixels.data(), &label, &reason) == SampleStatus::skipped) {
      bad.push_back({dataset.sample_name(index), reason});
      continue;
    }
    ++good;
    for (int64_t c = 0; c < shape.c; ++c) {
      const float* begin = pixels.data() + c * plane;
      double sum = 0;
      for (int64_t k = 0; k < plane; ++k) sum += begin[k];
      means[size_t(c)] += sum / static_cast<double>(plane);
    }
  }
  if (good == 0)
    throw error("all {} images read for the mean cannot be used: {}", count, to_string(bad));
  for (double& mean : means) mean /= static_cast<double>(good);
  return means;
}

const char* task_text(int64_t task) {
  return task == TANDEM_TASK_LABELS ? "labels" : task == TANDEM_TASK_VALUES ? "values" : "classes";
}

TargetScale measure_target_scale(const Dataset& dataset) {
  const auto count = size_t(dataset.class_count());
  TargetScale scale{std::vector<double>(count, 0.0), std::vector<double>(count, 0.0)};
  std::vector<float> values(count);
  for (int64_t i = 0; i < dataset.size(); ++i) {  // Welford's sums
    dataset.values(i, values.data());
    for (size_t k = 0; k < count; ++k) {
      const double before = values[k] - scale.means[k];
      scale.means[k] += before / static_cast<double>(i + 1);
      scale.deviations[k] += before * (values[k] - scale.means[k]);
    }
  }
  for (double& sum : scale.deviations) {
    sum = sum > 0 ? std::sqrt(sum / static_cast<double>(dataset.size())) : 1;
  }
  return scale;
}

std::vector<int64_t> class_labels(const Dataset& dataset) {
  std::vector<int64_t> labels;
  labels.reserve(size_t(dataset.size()));
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const std::optional<int64_t> label = dataset.label(i);
    if (!label) {
      throw error("data set '{}' cannot tell the classes of its samples without reading them",
                  dataset.type_name());
    }
    labels.push_back(*label);
  }
  return labels;
}

}  // namespace tandem
