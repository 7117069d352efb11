// The damaged samples of a run: each listed once, by name, in the order of delivery. And the limits
// above which training on the other samples would be wrong.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "include/tandem/observer.h"

namespace tandem {

class BadSamples {
 public:
  // `size`: samples in the data set.
  BadSamples(double share_limit, int64_t size) : share_limit_(share_limit), size_(size) {}

  // Adds the damaged samples of a batch of `samples` samples. Error if the whole batch is damaged,
  // if more than one and more than the limit's share of the data set is, or if after at least 200
  // samples of a larger set the damaged share of those is above the limit. With a limit of 0 the
  // first damaged sample is an Error, with 1 none is.
  void add(int64_t batch, int64_t samples, const std::vector<BadSample>& damaged);
  [[nodiscard]] const std::vector<BadSample>& list() const { return list_; }

 private:
  double share_limit_;
  int64_t size_;
  int64_t seen_ = 0, damaged_ = 0;
  std::vector<BadSample> list_;
  std::set<std::string> names_;
};

// The first few, as "a.jpg: truncated; b.jpg: empty; and 7 more".
[[nodiscard]] std::string to_string(const std::vector<BadSample>& samples);

}  // namespace tandem
