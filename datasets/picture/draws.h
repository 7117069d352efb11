// The random numbers of one sample's augmentation: a function of (seed, sample) and of the order of
// the draws.
#pragma once

#include <cstdint>

#include "plugins/random.h"

namespace tandem::picture {

class Draws {
 public:
  Draws(uint64_t seed, uint64_t sample) : seed_(seed), sample_(sample) {}

  uint32_t bits() {
    if (next_ % 4 == 0) block_ = tandem_random_block(seed_, 0, layer, sample_, next_ / 4);
    return block_.value[next_++ % 4];
  }
  double uniform() { return tandem_uniform(bits()); }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  // 0 to count - 1
  int below(int count) {
    return static_cast<int>(static_cast<uint64_t>(bits()) * static_cast<uint64_t>(count) >> 32);
  }
  bool chance(double probability) { return uniform() < probability; }

 private:
  static constexpr uint32_t layer = 0x61756720;
  uint64_t seed_, sample_;
  uint32_t next_ = 0;
  tandem_random4 block_{};
};

}  // namespace tandem::picture
