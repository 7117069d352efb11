#include <array>
#include <mutex>
#include <numeric>

#include "core/base/random.h"
#include "core/data/dataset.h"

namespace tandem {

// A batch touches at most two epochs unless it is longer than one, and the ring is only a few
// batches ahead: two permutations are enough.
struct SampleOrder::Cache {
  struct Epoch {
    int64_t number = -1;
    std::vector<int64_t> indices;
  };
  std::mutex mutex;
  std::array<Epoch, 2> epochs;
};

SampleOrder::SampleOrder(int64_t size, uint64_t seed, bool shuffle)
    : size_(size), seed_(seed), shuffle_(shuffle), cache_(std::make_unique<Cache>()) {
  if (size < 1) throw error("an order of {} samples: there must be at least 1", size);
}

SampleOrder::~SampleOrder() = default;

int64_t SampleOrder::index(int64_t position) const {
  const auto offset = static_cast<size_t>(position % size_);
  if (!shuffle_) return static_cast<int64_t>(offset);
  const int64_t number = epoch(position);
  const std::lock_guard lock(cache_->mutex);
  Cache::Epoch& slot = cache_->epochs[static_cast<size_t>(number % 2)];
  if (slot.number != number) {
    slot.indices.resize(static_cast<size_t>(size_));
    std::iota(slot.indices.begin(), slot.indices.end(), 0);
    Random random(seed_, stream_of("sample order") + static_cast<uint64_t>(number));
    random.shuffle(slot.indices);
    slot.number = number;
  }
  return slot.indices[offset];
}

uint64_t SampleOrder::sample_seed(int64_t position) const {
  const auto sample = static_cast<uint64_t>(index(position));
  Random random(seed_ ^ (sample * 0x9E3779B97F4A7C15U),
                stream_of("sample seed") + static_cast<uint64_t>(epoch(position)));
  const uint64_t upper = random.bits();
  return upper << 32 | random.bits();
}

}  // namespace tandem
