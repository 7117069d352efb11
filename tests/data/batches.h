// Batches of a loader as plain values, for comparison.
#pragma once

#include <cstdlib>
#include <vector>

#include "core/data/loader/loader.h"

namespace tandem::test {

[[nodiscard]] inline Loader::Allocator host_memory() {
  return {[](int64_t bytes) { return std::aligned_alloc(64, static_cast<size_t>(bytes)); },
          [](void* address) { std::free(address); }};
}

// The content of a batch, which is released.
struct Contents {
  int64_t number = 0, epoch = 0, samples = 0;
  std::vector<float> labels, pixels;
  bool operator==(const Contents&) const = default;
};

[[nodiscard]] inline Contents take(Loader& loader) {
  const Batch batch = loader.next();
  const BatchLayout& layout = loader.layout();
  const auto* labels = reinterpret_cast<const float*>(batch.memory + layout.label_offset);
  const auto* pixels = reinterpret_cast<const float*>(batch.memory + layout.data_offset);
  Contents contents{batch.number, batch.epoch, batch.samples, {}, {}};
  contents.labels.assign(labels, labels + layout.rows);
  contents.pixels.assign(pixels, pixels + layout.rows * element_count(layout.sample));
  loader.release(batch);
  return contents;
}

[[nodiscard]] inline std::vector<Contents> take_all(const Dataset& data,
                                                    const LoaderOptions& options, int count) {
  Loader loader(data, options, host_memory());
  std::vector<Contents> batches;
  for (int i = 0; i < count; ++i) batches.push_back(take(loader));
  return batches;
}

// The index of each row's sample.
[[nodiscard]] inline std::vector<int64_t> samples_of(const Contents& contents) {
  std::vector<int64_t> samples;
  for (size_t i = 0; i < contents.labels.size(); ++i) {
    samples.push_back(static_cast<int64_t>(contents.pixels[4 * i]));
  }
  return samples;
}

[[nodiscard]] inline LoaderOptions in_file_order(int64_t batch) {
  LoaderOptions options;
  options.batch = batch;
  options.shuffle = false;
  return options;
}

[[nodiscard]] inline LoaderOptions evaluation(int64_t batch) {
  LoaderOptions options = in_file_order(batch);
  options.wrap = false;
  options.bad_share_limit = 1;
  return options;
}

}  // namespace tandem::test
