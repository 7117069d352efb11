// A stream of random numbers on the host, for fillers and shuffles. It is a pure function of its
// key (Philox) and the same on every machine and compiler, unlike the distributions of <random>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plugins/fnv.h"
#include "plugins/random.h"

namespace tandem {

class Random {
 public:
  // `stream` separates the users of one seed; stream_of() makes it from a name.
  Random(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  [[nodiscard]] uint32_t bits();
  [[nodiscard]] double uniform();                // [0, 1), 53 bits
  [[nodiscard]] double normal();                 // mean 0, deviation 1 (Box-Muller)
  [[nodiscard]] uint64_t below(uint64_t bound);  // [0, bound), unbiased

  // Fisher-Yates.
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  uint64_t seed_, stream_;
  uint64_t counter_ = 0;
  tandem_random4 block_{};
  int left_ = 0;
  bool has_spare_ = false;
  double spare_ = 0;
};

// FNV-1a of a name, for Random's stream.
[[nodiscard]] constexpr uint64_t stream_of(const char* name) {
  return fnv::hash_of(name);
}

}  // namespace tandem
