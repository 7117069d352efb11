#include "bench/peak.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace tandem::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int chains = 12;  // this number of sums hides an instruction's latency
constexpr int64_t rounds = 4'000'000;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The sums are used, so that the compiler keeps them.
volatile float sink;

__attribute__((target("avx2,fma"))) double avx2_rate() {
  __m256 sums[chains];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.0F);
  const __m256 a = _mm256_set1_ps(0.999F), b = _mm256_set1_ps(0.001F);
  const Clock::time_point begin = Clock::now();
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  }
  const double seconds = seconds_since(begin);
  for (const __m256& sum : sums) sink = _mm256_cvtss_f32(sum);
  return 2.0 * 8 * chains * rounds / seconds;
}

__attribute__((target("avx512f"))) double avx512_rate() {
  __m512 sums[chains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.0F);
  const __m512 a = _mm512_set1_ps(0.999F), b = _mm512_set1_ps(0.001F);
  const Clock::time_point begin = Clock::now();
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  }
  const double seconds = seconds_since(begin);
  for (const __m512& sum : sums) sink = _mm512_cvtss_f32(sum);
  return 2.0 * 16 * chains * rounds / seconds;
}

// Each lane adds two products.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) double bfloat16_rate() {
  __m512 sums[chains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.0F);
  const auto a = (__m512bh)_mm512_set1_epi16(0x3f80), b = (__m512bh)_mm512_set1_epi16(0x3a00);
  const Clock::time_point begin = Clock::now();
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  }
  const double seconds = seconds_since(begin);
  for (const __m512& sum : sums) sink = _mm512_cvtss_f32(sum);
  return 4.0 * 16 * chains * rounds / seconds;
}

struct alignas(64) TileConfiguration {
  uint8_t palette = 1, rest[15] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t row_count[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Products of tiles (AMX), of four sums in turns.
__attribute__((target("amx-tile,amx-bf16"))) double tile_rate() {
  static const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  const Clock::time_point begin = Clock::now();
  constexpr int64_t tile_rounds = rounds / 16;
  for (int64_t i = 0; i < tile_rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  const double seconds = seconds_since(begin);
  _tile_release();
  return 2.0 * 16 * 16 * 32 * 4 * tile_rounds / seconds;
}

std::string_view cap() {
  const char* name = std::getenv("ONEDNN_MAX_CPU_ISA");
  return name == nullptr ? "" : name;
}

// Whether the environment caps the kernels below AVX-512.
bool excludes_avx512() {
  return cap().starts_with("SSE") || cap() == "AVX" || cap().starts_with("AVX2");
}

// Whether there are tiles: the CPU has them and their palette, and Linux gives them.
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned tiles = 1U << 24 | 1U << 22;
  if (cap().starts_with("AVX512") && cap().find("AMX") == std::string_view::npos) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & tiles) != tiles) return false;
  if (__get_cpuid_count(0x1d, 0, &a, &b, &c, &d) == 0 || a == 0) return false;
  constexpr int request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
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
  Peak peak;
  const bool wide = !excludes_avx512();
  if (wide && __builtin_cpu_supports("avx512f")) {
    peak.float32 = best_of_team(threads, &avx512_rate);
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    peak.float32 = best_of_team(threads, &avx2_rate);
  }
  if (wide && __builtin_cpu_supports("avx512bf16")) {
    peak.bfloat16 = best_of_team(threads, has_tiles() ? &tile_rate : &bfloat16_rate);
  }
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
