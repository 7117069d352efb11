// What measures one thread's peak, shared by the files that do.
#pragma once

#include <chrono>
#include <cstdint>

namespace tandem::bench {

using Clock = std::chrono::steady_clock;

#if defined(__x86_64__)
// This number of sums hides an instruction's latency, in 16 registers.
constexpr int chains = 12;
#else
constexpr int chains = 16;  // of cores with four vector units; g++ unrolls no longer loops
#endif
constexpr int64_t rounds = 4'000'000;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The sums are used, so that the compiler keeps them.
inline volatile float sink = 1;

// Measures multiplications and additions per second of bfloat16 on the calling thread; null if this
// CPU has no instructions for them, or ONEDNN_MAX_CPU_ISA excludes them.
[[nodiscard]] double (*bfloat16_rate())();

}  // namespace tandem::bench
