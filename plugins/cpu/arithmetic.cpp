#include "plugins/cpu/arithmetic.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "plugins/cpu/team.h"
#include "plugins/sdk.h"

// The plain x86-64 instructions reach half of the memory's speed from one core. The resolvers of
// cloned functions run before a sanitizer has started, and g++ 12 instruments them.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define TANDEM_CPU_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TANDEM_CPU_VECTOR
#endif

namespace tandem::cpu {

namespace {

// Small enough to stay in the L1 cache while one source after the other is added.
constexpr int64_t block = 2048;

TANDEM_CPU_VECTOR void add_range(float* target, const float* source, int64_t count) {
  for (int64_t i = 0; i < count; ++i) target[i] += source[i];
}

// Two sources in one pass: the sum is rounded as if they were added one after the other.
TANDEM_CPU_VECTOR void add_range(float* target, const float* first, const float* second,
                                 int64_t count) {
  for (int64_t i = 0; i < count; ++i) target[i] = (target[i] + first[i]) + second[i];
}

struct Sgd {
  float momentum, decay, rate;
};

TANDEM_CPU_VECTOR void sgd_range(float* __restrict weights, const float* __restrict gradient,
                                 float* __restrict history, Sgd rule, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float step =
        rule.momentum * history[i] + rule.rate * (gradient[i] + rule.decay * weights[i]);
    history[i] = step;
    weights[i] -= step;
  }
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

void demand_count(const char* what, int64_t count) {
  if (count < 0) throw sdk::invalid(what, " of ", count, " values");
}

}  // namespace

void fill(int32_t threads, float* target, float value, int64_t count) {
  demand_count("fill", count);
  for_ranges(threads, count,
             [&](int64_t begin, int64_t end) { std::fill(target + begin, target + end, value); });
}

void add(int32_t threads, float* target, const float* const* sources, uint32_t source_count,
         int64_t count) {
  demand_count("add", count);
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

void update(int32_t threads, const tandem_update& update) {
  demand_count("update", update.count);
  if (update.rule != TANDEM_UPDATE_SGD) {
    throw sdk::unsupported("update rule ", update.rule, "; this backend knows SGD (",
                           TANDEM_UPDATE_SGD, ")");
  }
  if (update.state_count < 1) throw sdk::invalid("SGD needs one state array");
  if (update.skip != nullptr && *update.skip != 0) return;
  const Sgd rule{update.momentum, update.decay, update.step->rate * update.rate_multiplier};
  float* const history = update.state[0];
  for_ranges(threads, update.count, [&](int64_t begin, int64_t end) {
    sgd_range(update.weights + begin, update.gradient + begin, history + begin, rule, end - begin);
  });
}

void check_finite(int32_t threads, const float* values, int64_t count, int32_t* skip) {
  demand_count("check", count);
  std::atomic<bool> finite{true};
  for_ranges(threads, count, [&](int64_t begin, int64_t end) {
    if (!is_finite_range(values + begin, end - begin)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  if (!finite) *skip = 1;
}

}  // namespace tandem::cpu
