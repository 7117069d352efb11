// The OpenMP team of a stream's thread. In ThreadSanitizer builds, where OpenMP's barriers cannot
// be seen, everything runs on the calling thread.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
#include <omp.h>
#define TANDEM_CPU_TEAMS 1
#else
#define TANDEM_CPU_TEAMS 0
#endif

namespace tandem::cpu {

// For everything the calling thread starts from now on: ours, and a library's such as oneDNN.
inline void set_team_size([[maybe_unused]] int32_t threads) {
#if TANDEM_CPU_TEAMS
  omp_set_num_threads(threads);
#endif
}

// Makes idle teams of this process sleep instead of spin; once, at the first call. Without it every
// idle worker takes a core from decoders, copies and other devices for milliseconds.
void calm_idle_teams();

// Calls body(begin, end) for ranges that cover [0, count) once, on up to `threads` threads. Below a
// size where waking a team costs more than it brings, on this thread only. `body` must give each
// element a value that does not depend on where the ranges are cut.
template <class Body>
void for_ranges([[maybe_unused]] int32_t threads, int64_t count, const Body& body) {
#if TANDEM_CPU_TEAMS
  constexpr int64_t worth_a_thread = 16384;
  const int64_t useful = std::min<int64_t>(threads, count / worth_a_thread);
  if (useful > 1) {
    constexpr int64_t line = 16;  // floats: no two threads write one cache line
    const int64_t share = ((count + useful - 1) / useful + line - 1) / line * line;
#pragma omp parallel for num_threads(static_cast <int>(useful)) schedule(static, 1)
    for (int64_t part = 0; part < useful; ++part) {
      const int64_t begin = part * share;
      if (begin < count) body(begin, std::min(count, begin + share));
    }
    return;
  }
#endif
  if (count > 0) body(int64_t{0}, count);
}

// The same over [0, count) items of `floats` elements each, for work that is not cut within an
// item.
template <class Body>
void for_items([[maybe_unused]] int32_t threads, int64_t count, [[maybe_unused]] int64_t floats,
               const Body& body) {
#if TANDEM_CPU_TEAMS
  constexpr int64_t worth_a_thread = 16384;
  const int64_t useful = std::min<int64_t>({threads, count, count * floats / worth_a_thread});
  if (useful > 1) {
#pragma omp parallel for num_threads(static_cast <int>(useful)) schedule(static, 1)
    for (int64_t part = 0; part < useful; ++part) {
      body(count * part / useful, count * (part + 1) / useful);
    }
    return;
  }
#endif
  if (count > 0) body(int64_t{0}, count);
}

// Calls body(part) for each of [0, parts), on up to `threads` threads: for sums whose order must
// not depend on the number of threads. The caller adds the parts in their order.
template <class Body>
void for_parts([[maybe_unused]] int32_t threads, int64_t parts, const Body& body) {
#if TANDEM_CPU_TEAMS
  const int64_t useful = std::min<int64_t>(threads, parts);
#pragma omp parallel for num_threads(static_cast <int>(useful)) if (useful > 1) schedule(static)
#endif
  for (int64_t part = 0; part < parts; ++part) body(part);
}

}  // namespace tandem::cpu
