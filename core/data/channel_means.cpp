#include <algorithm>

#include "core/data/bad_samples.h"
#include "core/data/loader.h"

namespace tandem {

std::vector<double> channel_means(const Dataset& dataset, int64_t limit) {
  const Shape shape = dataset.shape();
  const int64_t count = std::clamp<int64_t>(limit, 1, dataset.size());
  const int64_t plane = shape.h * shape.w;
  std::vector<float> pixels(static_cast<size_t>(element_count(shape)));
  std::vector<double> means(static_cast<size_t>(shape.c), 0.0);
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
      means[static_cast<size_t>(c)] += sum / static_cast<double>(plane);
    }
  }
  if (good == 0)
    throw error("all {} images read for the mean are damaged: {}", count, to_string(bad));
  for (double& mean : means) mean /= static_cast<double>(good);
  return means;
}

}  // namespace tandem
