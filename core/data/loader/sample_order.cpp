#include "core/data/loader/sample_order.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/base/numbers/random.h"

namespace tandem {

SampleOrder::SampleOrder(int64_t size, uint64_t seed, bool shuffle, std::vector<int64_t> labels)
    : size_(size), seed_(seed), shuffle_(shuffle) {
  if (size < 1) throw error("an order of {} samples: there must be at least 1", size);
  std::map<int64_t, std::vector<int64_t>> classes;
  for (size_t i = 0; i < labels.size(); ++i) {
    classes[labels[i]].push_back(static_cast<int64_t>(i));
  }
  for (auto& [label, samples] : classes) by_class_.push_back(std::move(samples));
}

std::vector<int64_t> SampleOrder::balanced_epoch(int64_t number) const {
  Random random(seed_, stream_of("balanced order") + static_cast<uint64_t>(number));
  const auto classes = static_cast<int64_t>(by_class_.size());
  std::vector<int64_t> indices;
  indices.reserve(size_t(size_));
  for (int64_t c = 0; c < classes; ++c) {
    // In every epoch other classes have the remaining places.
    const bool more = (c + number) % classes < size_ % classes;
    int64_t places = size_ / classes + (more ? 1 : 0);
    std::vector<int64_t> samples = by_class_[size_t(c)];
    while (places > 0) {
      random.shuffle(samples);
      const auto taken = std::min(places, static_cast<int64_t>(samples.size()));
      indices.insert(indices.end(), samples.begin(), samples.begin() + taken);
      places -= taken;
    }
  }
  random.shuffle(indices);
  return indices;
}

int64_t SampleOrder::index(int64_t position) const {
  const auto offset = size_t(position % size_);
  if (!shuffle_) return static_cast<int64_t>(offset);
  const int64_t number = epoch(position);
  const std::lock_guard lock(mutex_);
  Epoch& slot = epochs_[size_t(number % 2)];
  if (slot.number != number) {
    if (by_class_.empty()) {
      slot.indices.resize(size_t(size_));
      std::iota(slot.indices.begin(), slot.indices.end(), 0);
      Random random(seed_, stream_of("sample order") + static_cast<uint64_t>(number));
      random.shuffle(slot.indices);
    } else {
      slot.indices = balanced_epoch(number);
    }
    slot.number = number;
  }
  return slot.indices[offset];
}

uint64_t SampleOrder::sample_seed(int64_t position) const {
  const auto sample = static_cast<uint64_t>(by_class_.empty() ? index(position) : position);
  Random random(seed_ ^ (sample * 0x9E3779B97F4A7C15U),
                stream_of("sample seed") + static_cast<uint64_t>(epoch(position)));
  const uint64_t upper = random.bits();
  return upper << 32 | random.bits();
}

}  // namespace tandem
