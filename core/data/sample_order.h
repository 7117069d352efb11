// The endless sequence of training samples: position p is sample order(p / size)[p % size] of epoch
// p / size, a function of (seed, epoch), so that a run can be resumed and divided among devices.
// Thread-safe. Without shuffling every epoch has the order 0, 1, 2, ...
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tandem {

// With `labels` of all samples the classes are balanced: an epoch is as long, but each class has
// the same number of places in it, within one. The samples of a class have its places in random
// order, several times where it has few.
class SampleOrder {
 public:
  SampleOrder(int64_t size, uint64_t seed, bool shuffle, std::vector<int64_t> labels = {});
  ~SampleOrder();
  [[nodiscard]] int64_t index(int64_t position) const;
  [[nodiscard]] int64_t epoch(int64_t position) const { return position / size_; }
  // The seed of the augmentation at a position: a function of (seed, epoch, sample), or of (seed,
  // position) for balanced classes, where an epoch may have a sample twice.
  [[nodiscard]] uint64_t sample_seed(int64_t position) const;

 private:
  struct Cache;
  int64_t size_;
  uint64_t seed_;
  bool shuffle_;
  std::vector<std::vector<int64_t>> by_class_;  // balanced: the samples of each class that has any
  std::unique_ptr<Cache> cache_;

  [[nodiscard]] std::vector<int64_t> balanced_epoch(int64_t number) const;
};

}  // namespace tandem
