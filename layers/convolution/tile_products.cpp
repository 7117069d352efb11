#include "layers/convolution/tile_products.h"

#include "plugins/cpu/onednn.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tandem::layers::tile_products {

#if defined(__x86_64__)

// Of g++ 12's own headers, whose results are undefined on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace {

#define TANDEM_TILES __attribute__((target("amx-tile,amx-bf16,avx512f")))

// Linux gives a process the tiles' state when it asks for it.
bool ask_for_tiles() {
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

inline void fence() {
  asm volatile("" ::: "memory");
}

struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t row_count[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// g++ 12 does not know that the instructions of tiles read and write memory: configurations are
// constants, and what a product reads and writes is fenced.
TANDEM_TILES void load_configuration() {
  static const TileConfiguration configuration;
  fence();
  _tile_loadconfig(&configuration);
}
TANDEM_TILES void release_tiles() {
  _tile_release();
}

constexpr int64_t sum_bytes = block * static_cast<int64_t>(sizeof(float));

// Tiles 0 to 3 are the sums, 4 and 5 the first operand's, 6 and 7 the second's. All are loaded
// first: a core that also runs another thread does not rename tiles.
template <int Rows, int Columns>
TANDEM_TILES inline void add_step(const cpu::bfloat16* a, int64_t a_bytes, int64_t a_tile,
                                  const cpu::bfloat16* b, int64_t b_bytes, int64_t b_tile) {
  _tile_loadd(4, a, a_bytes);
  if constexpr (Rows == 2) _tile_loadd(5, a + a_tile, a_bytes);
  _tile_loadd(6, b, b_bytes);
  if constexpr (Columns == 2) _tile_loadd(7, b + b_tile, b_bytes);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (Columns == 2) _tile_dpbf16ps(1, 4, 7);
  if constexpr (Rows == 2) _tile_dpbf16ps(2, 5, 6);
  if constexpr (Rows == 2 && Columns == 2) _tile_dpbf16ps(3, 5, 7);
}

template <int Rows, int Columns>
TANDEM_TILES inline void store_sums(float* sums) {
  _tile_stored(0, sums, sum_bytes);
  if constexpr (Columns == 2) _tile_stored(1, sums + columns, sum_bytes);
  if constexpr (Rows == 2) {
    _tile_stored(2, sums + rows * block, sum_bytes);
    if constexpr (Columns == 2) _tile_stored(3, sums + rows * block + columns, sum_bytes);
  }
  fence();
}

template <int Rows, int Columns>
TANDEM_TILES void correlate_tiles(const Correlation& c) {
  fence();
  _tile_loadd(0, c.sums, sum_bytes);
  if constexpr (Columns == 2) _tile_loadd(1, c.sums + columns, sum_bytes);
  if constexpr (Rows == 2) {
    _tile_loadd(2, c.sums + rows * block, sum_bytes);
    if constexpr (Columns == 2) _tile_loadd(3, c.sums + rows * block + columns, sum_bytes);
  }
  constexpr auto value = static_cast<int64_t>(sizeof(cpu::bfloat16));
  for (int64_t image = 0; image < c.images; ++image) {
    const cpu::bfloat16 *a = c.a + image * c.a_image, *b = c.b + image * c.b_image;
    for (int64_t step = 0; step < c.steps; ++step, a += depth, b += depth / 2 * c.pair) {
      add_step<Rows, Columns>(a, c.row * value, rows * c.row, b, c.pair * value, 2 * columns);
    }
  }
  store_sums<Rows, Columns>(c.sums);
}

}  // namespace

bool are_available() {
  static const bool available = cpu::multiplies_tiles(TANDEM_BFLOAT16) && ask_for_tiles();
  return available;
}

Session::Session() {
  load_configuration();
}
Session::~Session() {
  release_tiles();
}

void correlate(const Correlation& correlation, Tiles tiles) {
  if (tiles.rows == 2) {
    tiles.columns == 2 ? correlate_tiles<2, 2>(correlation) : correlate_tiles<2, 1>(correlation);
  } else {
    tiles.columns == 2 ? correlate_tiles<1, 2>(correlation) : correlate_tiles<1, 1>(correlation);
  }
}

TANDEM_TILES void interleave(const cpu::bfloat16* first, const cpu::bfloat16* second, int64_t count,
                             cpu::bfloat16* target) {
  for (int64_t i = 0; i < count; i += 16) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first + i));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second + i));
    const __m512i pairs =
        _mm512_or_si512(_mm512_cvtepu16_epi32(a), _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16));
    _mm512_storeu_si512(target + 2 * i, pairs);
  }
}

// Pairs of pixels are words of 32 bits, of which a matrix of 16x16 is transposed in four rounds of
// exchanges.
TANDEM_TILES void transpose(const cpu::bfloat16* source, int64_t source_row, cpu::bfloat16* target,
                            int64_t target_row) {
  __m512i x[16], y[16];
  for (int i = 0; i < 16; ++i) {
    const cpu::bfloat16* pixels = source + 2 * i * source_row;
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pixels));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pixels + source_row));
    x[i] =
        _mm512_or_si512(_mm512_cvtepu16_epi32(a), _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16));
  }
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  for (int i = 0; i < 16; i += 8) {
    for (int k = 0; k < 4; ++k) {
      y[i + k] = _mm512_shuffle_i32x4(x[i + k], x[i + k + 4], 0x88);
      y[i + k + 4] = _mm512_shuffle_i32x4(x[i + k], x[i + k + 4], 0xdd);
    }
  }
  for (int k = 0; k < 8; ++k) {
    x[k] = _mm512_shuffle_i32x4(y[k], y[k + 8], 0x88);
    x[k + 8] = _mm512_shuffle_i32x4(y[k], y[k + 8], 0xdd);
  }
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(target + i * target_row, x[i]);
}

#pragma GCC diagnostic pop

#else

bool are_available() {
  return false;
}
Session::Session() = default;
Session::~Session() = default;
void correlate(const Correlation&, Tiles) {}
void interleave(const cpu::bfloat16*, const cpu::bfloat16*, int64_t, cpu::bfloat16*) {}
void transpose(const cpu::bfloat16*, int64_t, cpu::bfloat16*, int64_t) {}

#endif

}  // namespace tandem::layers::tile_products
