// Many random blocks at once: the same bits as tandem_random_block() with the same key, computed
// side by side so that compilers vectorize the loops.
#pragma once

#include "plugins/sdk.h"

namespace tandem::layers {

// The random numbers of one layer in one step.
class RandomBlocks {
 public:
  static constexpr int width = 16;  // blocks at once

  RandomBlocks(const tandem_step& step, uint32_t layer)
      : layer_(layer),
        key_(tandem_philox(static_cast<uint32_t>(step.step), static_cast<uint32_t>(step.step >> 32),
                           0x74616e64u, 0x656d0001u, static_cast<uint32_t>(step.seed),
                           static_cast<uint32_t>(step.seed >> 32))) {}

  // bits[4 * i + lane] = value[lane] of block first + i of the row, for all i below `width`. It is
  // inlined so that it is compiled for the instruction set of its caller.
  [[gnu::always_inline]] inline void draw(uint64_t row, uint32_t first, uint32_t* bits) const {
    uint32_t c0[width], c1[width], c2[width], c3[width];
    for (int i = 0; i < width; ++i) {
      c0[i] = first + static_cast<uint32_t>(i);
      c1[i] = layer_;
      c2[i] = static_cast<uint32_t>(row);
      c3[i] = static_cast<uint32_t>(row >> 32);
    }
    uint32_t k0 = key_.value[0], k1 = key_.value[1];
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < width; ++i) {
        const uint64_t p0 = uint64_t{0xD2511F53u} * c0[i], p1 = uint64_t{0xCD9E8D57u} * c2[i];
        const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
        const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
        c1[i] = static_cast<uint32_t>(p1);
        c3[i] = static_cast<uint32_t>(p0);
        c0[i] = n0;
        c2[i] = n2;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (size_t i = 0; i < width; ++i) {
      bits[4 * i] = c0[i];
      bits[4 * i + 1] = c1[i];
      bits[4 * i + 2] = c2[i];
      bits[4 * i + 3] = c3[i];
    }
  }

 private:
  uint32_t layer_;
  tandem_random4 key_;
};

}  // namespace tandem::layers
