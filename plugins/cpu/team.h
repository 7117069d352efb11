// The OpenMP team of a stream's thread. It is a team of libgomp with every compiler, since oneDNN's
// teams are libgomp's and take their size from it. clang's OpenMP has a library of its own, so with
// clang teams are started by the functions that g++ calls (TANDEM_LIBGOMP, set by CMake).
// ThreadSanitizer cannot see OpenMP's barriers, so in its builds everything runs on the calling
// thread.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(TANDEM_LIBGOMP)
extern "C" {
void GOMP_parallel(void (*run)(void*), void* data, unsigned threads, unsigned flags);
void GOMP_barrier();
void omp_set_num_threads(int threads);
int omp_get_num_procs();
int omp_get_num_threads();
int omp_get_thread_num();
}
#define TANDEM_CPU_TEAMS 1
#elif defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
#include <omp.h>
#define TANDEM_CPU_TEAMS 1
#else
#define TANDEM_CPU_TEAMS 0
#endif

namespace tandem::cpu {

// Sets the size of all teams that the calling thread starts from now on, those of libraries such as
// oneDNN included.
inline void set_team_size([[maybe_unused]] int32_t threads) {
#if TANDEM_CPU_TEAMS
  omp_set_num_threads(threads);
#endif
}

// Calls body() on `threads` threads at once, which omp_get_thread_num() tells apart. The team may
// be smaller.
#if TANDEM_CPU_TEAMS
template <class Body>
void run_team(int threads, const Body& body) {
#if defined(TANDEM_LIBGOMP)
  const auto run = [](void* data) { (*static_cast<const Body*>(data))(); };
  GOMP_parallel(run, const_cast<Body*>(&body), static_cast<unsigned>(threads), 0);
#else
#pragma omp parallel num_threads(threads)
  body();
#endif
}

// Calls body(i) for each i of [0, count), on up to `count` threads.
template <class Body>
void for_each_of_team(int64_t count, const Body& body) {
  run_team(static_cast<int>(count), [&] {
    const int64_t threads = omp_get_num_threads();
    for (int64_t i = omp_get_thread_num(); i < count; i += threads) body(i);
  });
}
#endif

// Makes the idle teams of this process sleep instead of spin. Only the first call has an effect.
// Without it every idle worker takes a core from decoders, copies and other devices for
// milliseconds.
void calm_idle_teams();

// Calls body(begin, end) for ranges that cover [0, count) once, on up to `threads` threads, or on
// this thread only if the count is too small for a team to be worth its start. The value that
// `body` gives an element must not depend on the ranges.
template <class Body>
void for_ranges([[maybe_unused]] int32_t threads, int64_t count, const Body& body) {
#if TANDEM_CPU_TEAMS
  constexpr int64_t worth_a_thread = 16384;
  const int64_t useful = std::min<int64_t>(threads, count / worth_a_thread);
  if (useful > 1) {
    constexpr int64_t line = 16;  // floats: no two threads write one cache line
    const int64_t size = ((count + useful - 1) / useful + line - 1) / line * line;
    for_each_of_team(useful, [&](int64_t range) {
      const int64_t begin = range * size;
      if (begin < count) body(begin, std::min(count, begin + size));
    });
    return;
  }
#endif
  if (count > 0) body(int64_t{0}, count);
}

// The same for [0, count) items of `floats` elements each. An item is not divided.
template <class Body>
void for_items([[maybe_unused]] int32_t threads, int64_t count, [[maybe_unused]] int64_t floats,
               const Body& body) {
#if TANDEM_CPU_TEAMS
  constexpr int64_t worth_a_thread = 16384;
  const int64_t useful = std::min<int64_t>({threads, count, count * floats / worth_a_thread});
  if (useful > 1) {
    for_each_of_team(
        useful, [&](int64_t range) { body(count * range / useful, count * (range + 1) / useful); });
    return;
  }
#endif
  if (count > 0) body(int64_t{0}, count);
}

// target[i] = source[i]; nothing if they are the same memory.
template <class T>
void copy(int32_t threads, const T* source, T* target, int64_t count) {
  if (source == target) return;
  for_ranges(threads, count, [=](int64_t begin, int64_t end) {
    std::copy(source + begin, source + end, target + begin);
  });
}

// Calls body(part) for each of [0, parts), on up to `threads` threads. It is for sums whose order
// must not depend on the number of threads: the caller adds the results of the parts in their
// order.
template <class Body>
void for_parts([[maybe_unused]] int32_t threads, int64_t parts, const Body& body) {
#if TANDEM_CPU_TEAMS
  const int64_t useful = std::min<int64_t>(threads, parts);
  if (useful > 1) {
    for_each_of_team(useful, [&](int64_t range) {
      const int64_t end = parts * (range + 1) / useful;
      for (int64_t part = parts * range / useful; part < end; ++part) body(part);
    });
    return;
  }
#endif
  for (int64_t part = 0; part < parts; ++part) body(part);
}

}  // namespace tandem::cpu
