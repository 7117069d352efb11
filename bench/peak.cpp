// Compiled once for each of Highway's targets (plugins/cpu/highway.h).
#include "bench/peak.h"

#include "bench/peak_bfloat16.h"
#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The first sums are read, and the last ones written, between the two times: the compiler may move
// what only calculates.
double float32_rate() {
  const hn::ScalableTag<float> lanes;
  hn::Vec<decltype(lanes)> sums[chains];
  const auto a = hn::Set(lanes, 0.999F), b = hn::Set(lanes, 0.001F);
  const Clock::time_point begin = Clock::now();
  for (auto& sum : sums) sum = hn::Set(lanes, sink);
  for (int64_t i = 0; i < rounds; ++i) {
#if HWY_ARCH_ARM  // whose instruction overwrites what it adds to
    for (auto& sum : sums) sum = hn::MulAdd(a, b, sum);
#else  // without a fused instruction, a x b would be calculated once
    for (auto& sum : sums) sum = hn::MulAdd(sum, a, b);
#endif
  }
  for (const auto& sum : sums) sink = hn::GetLane(sum);
  const double seconds = seconds_since(begin);
  return 2.0 * double(hn::Lanes(lanes)) * chains * rounds / seconds;
}

}  // namespace
}  // namespace tandem::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <thread>
#include <vector>

namespace tandem::bench {
namespace {

HWY_EXPORT(float32_rate);

double best_float32_rate() {
  return HWY_DYNAMIC_DISPATCH(float32_rate)();
}

double best_of_team(int threads, double (*rate)()) {
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::vector<double> rates(static_cast<size_t>(threads));
    std::vector<std::thread> team;
    for (double& mine : rates) team.emplace_back([&mine, rate] { mine = rate(); });
    for (std::thread& member : team) member.join();
    double sum = 0;
    for (const double one : rates) sum += one;
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace

Peak measure_peak(int threads) {
  cpu::cap_highway();
  Peak peak;
  peak.float32 = best_of_team(threads, &best_float32_rate);
  if (const auto rate = bfloat16_rate()) peak.bfloat16 = best_of_team(threads, rate);
  return peak;
}

double measure_bandwidth(int threads) {
  // Bytes of each thread's three arrays: 512 MiB of each together, but more than a core's caches.
  constexpr size_t most = size_t{64} << 20, least = size_t{8} << 20, all = size_t{512} << 20;
  const auto team = static_cast<size_t>(threads);
  const size_t floats = std::clamp(all / team, least, most) / sizeof(float);
  std::vector<std::vector<float>> a(team), b(team), c(team);
  const auto on_all = [&](const auto& work) {
    std::vector<std::jthread> members;
    for (size_t i = 0; i < team; ++i) members.emplace_back([&work, i] { work(i); });
  };
  on_all([&](size_t i) {
    a[i].resize(floats);
    b[i].resize(floats);
    c[i].resize(floats);
  });
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Clock::time_point begin = Clock::now();
    on_all([&](size_t i) {
      const float *x = a[i].data(), *y = b[i].data();
      float* z = c[i].data();
      for (size_t k = 0; k < floats; ++k) z[k] = x[k] + 0.5F * y[k];
      sink = z[floats / 2];
    });
    const double bytes = 3.0 * sizeof(float) * static_cast<double>(floats * team);
    best = std::max(best, bytes / seconds_since(begin));
  }
  return best;
}

}  // namespace tandem::bench

#endif
