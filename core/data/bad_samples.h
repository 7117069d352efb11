// The damaged samples met so far: each listed once, by name, in the order of delivery; and the two
// limits beyond which training on what is left would be wrong.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/data/loader.h"

namespace tandem {

class BadSamples {
 public:
  explicit BadSamples(double share_limit) : share_limit_(share_limit) {}

  // Adds the damaged ones of a batch of `samples` samples. Throws Error if all of them are, or if
  // (from 200 samples on) the share of all samples is above the limit; at the first one if the
  // limit is 0, never if it is 1.
  void add(int64_t batch, int64_t samples, const std::vector<BadSample>& damaged);
  [[nodiscard]] const std::vector<BadSample>& list() const { return list_; }

 private:
  double share_limit_;
  int64_t seen_ = 0, damaged_ = 0;
  std::vector<BadSample> list_;
  std::set<std::string> names_;
};

// The first few, as "a.jpg: truncated; b.jpg: empty; and 7 more".
[[nodiscard]] std::string to_string(const std::vector<BadSample>& samples);

}  // namespace tandem
