#include "datasets/picture/held_out.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "plugins/random.h"

namespace tandem::picture {
namespace {

constexpr uint32_t split_layer = 0x73706c69;

// FNV-1a: classes draw apart from each other, and one more class changes no other's draw.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

std::vector<bool> choose_held_out(const std::string& class_name, size_t count, double fraction,
                                  uint64_t seed) {
  auto held = static_cast<size_t>(std::llround(fraction * static_cast<double>(count)));
  if (fraction < 1 && count > 0) held = std::clamp<size_t>(held, count > 1 ? 1 : 0, count - 1);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const uint64_t row = hash_of(class_name);
  for (size_t i = count; i > 1; --i) {
    const uint32_t bits =
        tandem_random_block(seed, 0, split_layer, row, static_cast<uint32_t>(i)).value[0];
    std::swap(order[i - 1], order[static_cast<uint64_t>(bits) * i >> 32]);
  }
  std::vector<bool> result(count, false);
  for (size_t i = 0; i < std::min(held, count); ++i) result[order[i]] = true;
  return result;
}

}  // namespace tandem::picture
