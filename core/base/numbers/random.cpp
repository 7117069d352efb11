#include "core/base/numbers/random.h"

#include <cmath>
#include <numbers>

namespace tandem {
namespace {
uint32_t low(uint64_t value) {
  return static_cast<uint32_t>(value);
}
uint32_t high(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}
}  // namespace

uint32_t Random::bits() {
  if (left_ == 0) {
    block_ = tandem_philox(low(counter_), high(counter_), low(stream_), high(stream_), low(seed_),
                           high(seed_));
    ++counter_;
    left_ = 4;
  }
  return block_.value[4 - left_--];
}

double Random::uniform() {
  const uint64_t upper = bits() >> 5;
  const uint64_t lower = bits() >> 6;
  return static_cast<double>(upper << 26 | lower) * 0x1p-53;
}

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // 1 - uniform() is never 0, so the logarithm is finite.
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  const double angle = 2 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

uint64_t Random::below(uint64_t bound) {
  if (bound < 2) return 0;
  // Draws below 2^64 mod bound are rejected: the others have every remainder equally often.
  const uint64_t unfair = (uint64_t{0} - bound) % bound;
  uint64_t draw = 0;
  do {
    draw = static_cast<uint64_t>(bits()) << 32;
    draw |= bits();
  } while (draw < unfair);
  return draw % bound;
}

}  // namespace tandem
