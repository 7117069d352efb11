// The endless sequence of training samples: position p is sample order(p / size)[p % size] of epoch
// p / size, a function of (seed, epoch), so that a run can be resumed and divided among devices.
// Thread-safe. Without shuffling every epoch has the order 0, 1, 2, ...
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tandem {

// With `labels` of all samples the classes are balanced: an epoch is as long, but each class has
// the same number of places in it, within one. The samples of a class have its places in random
// order, several times where it has few.
class SampleOrder {
 public:
  SampleOrder(int64_t size, uint64_t seed, bool shuffle, std::vector<int64_t> labels = {});
  [[nodiscard]] int64_t index(int64_t position) const;
  [[nodiscard]] int64_t epoch(int64_t position) const { return position / size_; }
  // The seed of the augmentation at a position: a function of (seed, epoch, sample), or of (seed,
  // position) for balanced classes, where an epoch may have a sample twice.
  [[nodiscard]] uint64_t sample_seed(int64_t position) const;

 private:
  struct Epoch {
    int64_t number = -1;
    std::vector<int64_t> indices;
  };
  [[nodiscard]] std::vector<int64_t> balanced_epoch(int64_t number) const;

  int64_t size_;
  uint64_t seed_;
  bool shuffle_;
  std::vector<std::vector<int64_t>> by_class_;  // balanced: the samples of each class that has any
  mutable std::mutex mutex_;
  // A batch has samples of at most two epochs unless it is longer than one, and the loader is only
  // a few batches ahead: two permutations are enough.
  mutable std::array<Epoch, 2> epochs_;
};

}  // namespace tandem
