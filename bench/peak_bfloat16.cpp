#include "bench/peak_bfloat16.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace tandem::bench {

namespace {

// Each lane adds two products.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) double vector_rate() {
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

}  // namespace

double (*bfloat16_rate())() {
  if (excludes_avx512() || !__builtin_cpu_supports("avx512bf16")) return nullptr;
  return has_tiles() ? &tile_rate : &vector_rate;
}

}  // namespace tandem::bench

#else

double (*tandem::bench::bfloat16_rate())() {
  return nullptr;
}

#endif
