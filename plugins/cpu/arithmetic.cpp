#include "plugins/cpu/arithmetic.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "plugins/cpu/team.h"
#include "plugins/cpu/vector.h"
#include "plugins/sdk.h"

namespace tandem::cpu {

namespace {

// Small enough to stay in the L1 cache while the sources are added one after the other.
constexpr int64_t block = 2048;

TANDEM_CPU_VECTOR void add_range(float* target, const float* source, int64_t count) {
  for (int64_t i = 0; i < count; ++i) target[i] += source[i];
}

// Two sources in one pass: the sum is rounded as if they were added one after the other.
TANDEM_CPU_VECTOR void add_range(float* target, const float* first, const float* second,
                                 int64_t count) {
  for (int64_t i = 0; i < count; ++i) target[i] = (target[i] + first[i]) + second[i];
}

// In lanes, so that the order of the additions is the same for any vector width.
TANDEM_CPU_VECTOR double sum_of_squares_range(const float* values, int64_t count) {
  constexpr int64_t width = 16;
  double lanes[width] = {};
  int64_t i = 0;
  for (; i + width <= count; i += width) {
    for (int64_t lane = 0; lane < width; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

TANDEM_CPU_VECTOR bool is_finite_range(const float* values, int64_t count) {
  constexpr uint32_t exponent = 0x7f800000u;
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    found |= (bits & exponent) == exponent ? 1u : 0u;
  }
  return found == 0;
}

void require_count(const char* what, int64_t count) {
  if (count < 0) throw sdk::invalid(what, " of ", count, " values");
}

}  // namespace

void fill(int32_t threads, float* target, float value, int64_t count) {
  require_count("fill", count);
  for_ranges(threads, count,
             [&](int64_t begin, int64_t end) { std::fill(target + begin, target + end, value); });
}

void add(int32_t threads, float* target, const float* const* sources, uint32_t source_count,
         int64_t count) {
  require_count("add", count);
  for_ranges(threads, count, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += block) {
      const int64_t size = std::min(block, end - at);
      uint32_t s = 0;
      for (; s + 1 < source_count; s += 2) {
        add_range(target + at, sources[s] + at, sources[s + 1] + at, size);
      }
      if (s < source_count) add_range(target + at, sources[s] + at, size);
    }
  });
}

double sum_of_squares(int32_t threads, const float* values, int64_t count) {
  require_count("sum of squares", count);
  constexpr int64_t parts = 64, line = 16;
  const int64_t part = (count / parts + line) / line * line;
  double sums[parts] = {};
  for_items(threads, parts, part, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = std::min(count, i * part), end = std::min(count, begin + part);
      sums[i] = sum_of_squares_range(values + begin, end - begin);
    }
  });
  double sum = 0;
  for (const double of_part : sums) sum += of_part;
  return sum;
}

void check_finite(int32_t threads, const float* values, int64_t count, int32_t* found_inf) {
  require_count("check", count);
  std::atomic<bool> finite{true};
  for_ranges(threads, count, [&](int64_t begin, int64_t end) {
    if (!is_finite_range(values + begin, end - begin)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  if (!finite) *found_inf = 1;
}

}  // namespace tandem::cpu
