#include "core/base/numbers/normals.h"

#include <bit>
#include <cmath>

#include "plugins/random.h"

// Built without fused multiply-adds (core/CMakeLists.txt), so that every clone gives the same bits.
// The resolvers of cloned functions run before a sanitizer has started.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define TANDEM_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TANDEM_VECTOR_CLONES
#endif

namespace tandem {
namespace {

constexpr int width = 32;  // pairs at once: fills a few vector registers, fits the L1 cache

struct Key {
  uint32_t stream_low, stream_high, seed_low, seed_high;
};

// word[k][i]: word k of the Philox block `first + i`.
[[gnu::always_inline]] inline void draw_blocks(const Key& key, uint64_t first,
                                               uint32_t (&word)[4][width]) {
  for (int i = 0; i < width; ++i) {
    const uint64_t counter = first + static_cast<uint64_t>(i);
    word[0][i] = static_cast<uint32_t>(counter);
    word[1][i] = static_cast<uint32_t>(counter >> 32);
    word[2][i] = key.stream_low;
    word[3][i] = key.stream_high;
  }
  uint32_t k0 = key.seed_low, k1 = key.seed_high;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < width; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53U} * word[0][i],
                     p1 = uint64_t{0xCD9E8D57U} * word[2][i];
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ word[1][i] ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ word[3][i] ^ k1;
      word[1][i] = static_cast<uint32_t>(p1);
      word[3][i] = static_cast<uint32_t>(p0);
      word[0][i] = n0;
      word[2][i] = n2;
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

// Random::uniform() of two words. They are converted as signed numbers, which vector code can do.
[[gnu::always_inline]] inline double uniform(uint32_t upper, uint32_t lower) {
  return static_cast<double>(static_cast<int32_t>(upper >> 5)) * 0x1p-27 +
         static_cast<double>(static_cast<int32_t>(lower >> 6)) * 0x1p-53;
}

// `yes` where the mask is all ones, `no` where it is 0. g++ compiles ?: to branches.
[[gnu::always_inline]] inline float select(int32_t mask, float yes, float no) {
  return std::bit_cast<float>((std::bit_cast<int32_t>(yes) & mask) |
                              (std::bit_cast<int32_t>(no) & ~mask));
}

// sqrt(-2 log(1 - u)), u in [0, 1). 1 - u = 2^n (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). Near
// 1, f = -u keeps all bits. The polynomial is a minimax fit of (log(1 + f) - f + f^2 / 2) / f^3;
// its error is 6e-9 of the logarithm.
[[gnu::always_inline]] inline float radius(float u, float rest) {
  const int32_t offset = std::bit_cast<int32_t>(rest) - 0x3f3504f3;
  const int32_t n = offset >> 23;  // at most 0
  const float of_rest = std::bit_cast<float>((offset & 0x007fffff) + 0x3f3504f3) - 1;
  const float f = select(n >> 31, of_rest, -u);
  const float upper = 0.14180906F + f * (-0.13128442F + f * (0.12883228F - f * 0.07862204F));
  const float p =
      0.33333316F + f * (-0.2500081F + f * (0.20002303F + f * (-0.1662456F + f * upper)));
  const auto exponent = static_cast<float>(n);
  // log 2 in two parts, the first short enough for exact products.
  const float small = f * f * (f * p - 0.5F) - exponent * 2.12194440e-4F;
  return std::sqrt(-2 * (exponent * 0.693359375F + (f + small)));
}

// Polynomials of r^2 for sin(2 pi r) / r and (cos(2 pi r) - 1) / r^2, |r| <= 1/8.
[[gnu::always_inline]] inline float sine(float r) {
  const float z = r * r;
  return r * (6.2831855F + z * (-41.34187F + z * (81.62667F - z * 76.82976F)));
}
[[gnu::always_inline]] inline float cosine(float r) {
  const float z = r * r;
  return 1 + z * (-19.739208F + z * (64.93914F + z * (-85.42312F + z * 58.561214F)));
}

// The pairs of the blocks from `first` on, pair i at values[2 i].
[[gnu::always_inline]] inline void draw_pairs(const Key& key, uint64_t first, float mean,
                                              float deviation, float* values) {
  uint32_t word[4][width];
  draw_blocks(key, first, word);
  float u[width], rest[width], part[width];
  int32_t quarter[width];
  // 1 - u and the angle within its quarter need more than 24 bits and so are computed in double.
  for (int i = 0; i < width; ++i) {
    const double first_uniform = uniform(word[0][i], word[1][i]);
    u[i] = static_cast<float>(first_uniform);
    rest[i] = static_cast<float>(1 - first_uniform);
    const double second = uniform(word[2][i], word[3][i]);
    // A positive number, and std::lround() would not be vectorized.
    quarter[i] = static_cast<int32_t>(second * 4 + 0.5);  // NOLINT(bugprone-incorrect-roundings)
    part[i] = static_cast<float>(second - static_cast<double>(quarter[i]) * 0.25);
  }
  float out[2 * width];
  for (int i = 0; i < width; ++i) {
    const float s = sine(part[i]), c = cosine(part[i]);
    const int32_t q = quarter[i], is_odd = -(q & 1);
    const int32_t sine_sign = (q & 2) << 30, cosine_sign = ((q + 1) & 2) << 30;
    const float x =
        std::bit_cast<float>(std::bit_cast<int32_t>(select(is_odd, s, c)) ^ cosine_sign);
    const float y = std::bit_cast<float>(std::bit_cast<int32_t>(select(is_odd, c, s)) ^ sine_sign);
    const float length = radius(u[i], rest[i]);
    out[size_t(2 * i)] = mean + deviation * (length * x);
    out[size_t(2 * i + 1)] = mean + deviation * (length * y);
  }
  for (int i = 0; i < 2 * width; ++i) values[i] = out[i];
}

}  // namespace

TANDEM_VECTOR_CLONES void draw_normals(uint64_t seed, uint64_t stream, float mean, float deviation,
                                       int64_t count, float* values) {
  const Key key{static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32),
                static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  constexpr int64_t numbers = int64_t{2} * width;
  int64_t done = 0;
  for (; done + numbers <= count; done += numbers) {
    draw_pairs(key, static_cast<uint64_t>(done / 2), mean, deviation, values + done);
  }
  if (done == count) return;
  float rest[2 * width];
  draw_pairs(key, static_cast<uint64_t>(done / 2), mean, deviation, rest);
  for (int64_t i = done; i < count; ++i) values[i] = rest[i - done];
}

}  // namespace tandem
