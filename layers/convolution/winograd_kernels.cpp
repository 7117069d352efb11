// Compiled once for each of Highway's targets (plugins/cpu/highway.h). No lambdas: clang would not
// compile them for the target.
#include "layers/convolution/winograd_kernels.h"

#include <algorithm>
#include <utility>

#include "layers/convolution/winograd_matrices.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/convolution/winograd_kernels.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::winograd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using cpu::bfloat16;

using D = hn::ScalableTag<float>;
using Vector = hn::Vec<D>;
constexpr int64_t lanes = HWY_MAX_BYTES / sizeof(float);

// The accumulators of a product: as many as the registers hold, besides a row of b and a value of
// a. Rows divide the lanes.
constexpr int row_block = lanes == 16 ? 8 : 4;
constexpr int panel = 3;
static_assert(lanes % row_block == 0);

// ---- products with the algorithm's matrices

// The first column of a row that is not 0.
template <class Matrix>
constexpr int first_term(int row) {
  int column = 0;
  while (Matrix::at(row, column) == 0) ++column;
  return column;
}

template <class Matrix, int Row, int Column>
HWY_INLINE Vector add_term(Vector sum, const Vector* x) {
  constexpr float factor = Matrix::at(Row, Column);
  constexpr bool is_first = first_term<Matrix>(Row) == Column;
  if constexpr (factor == 0) {
    return sum;
  } else if constexpr (is_first) {
    return factor == 1 ? x[Column] : hn::Mul(hn::Set(D(), factor), x[Column]);
  } else if constexpr (factor == 1) {
    return hn::Add(sum, x[Column]);
  } else if constexpr (factor == -1) {
    return hn::Sub(sum, x[Column]);
  } else {
    return hn::MulAdd(hn::Set(D(), factor), x[Column], sum);
  }
}

template <class Matrix, int Row, int... Column>
HWY_INLINE Vector row_product(const Vector* x, std::integer_sequence<int, Column...>) {
  Vector sum = hn::Zero(D());
  ((sum = add_term<Matrix, Row, Column>(sum, x)), ...);
  return sum;
}

template <class Matrix, int... Row>
HWY_INLINE void multiply_vector(const Vector* x, float* target, int64_t stride,
                                std::integer_sequence<int, Row...>) {
  using Columns = std::make_integer_sequence<int, Matrix::columns>;
  (hn::StoreU(row_product<Matrix, Row>(x, Columns()), D(), target + Row * stride), ...);
}

HWY_INLINE Vector load_vector(const float* source) {
  return hn::LoadU(D(), source);
}
HWY_INLINE Vector load_vector(const bfloat16* source) {
  const hn::Rebind<uint16_t, D> halves;
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const uint16_t*>(source));
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}
HWY_INLINE void store_vector(Vector vector, float* target) {
  hn::StoreU(vector, D(), target);
}
HWY_INLINE void store_vector(Vector vector, bfloat16* target) {
  HWY_ALIGN float values[lanes];
  hn::Store(vector, D(), values);
  for (int64_t i = 0; i < lanes; ++i) cpu::store(values[i], target[i]);
}

template <class T, int... I>
HWY_INLINE void load(Vector* x, const T* source, int64_t stride, std::integer_sequence<int, I...>) {
  ((x[I] = load_vector(source + I * stride)), ...);
}

// Result row r and column s of M X M^T goes to target + (r * M::rows + s) * stride.
template <class M, class T>
HWY_INLINE void transform(const T* x, int64_t row_stride, int64_t column_stride, float* target,
                          int64_t stride) {
  using Columns = std::make_integer_sequence<int, M::columns>;
  using Rows = std::make_integer_sequence<int, M::rows>;
  HWY_ALIGN float half[M::rows * M::columns * lanes];
  for (int64_t column = 0; column < M::columns; ++column) {
    Vector line[M::columns];
    load(line, x + column * column_stride, row_stride, Columns());
    multiply_vector<M>(line, half + column * lanes, M::columns * lanes, Rows());
  }
  for (int64_t row = 0; row < M::rows; ++row) {
    Vector line[M::columns];
    load(line, half + row * M::columns * lanes, lanes, Columns());
    multiply_vector<M>(line, target + row * M::rows * stride, stride, Rows());
  }
}

// ---- tiles of images

// The channels of a chunk. `in_line`: they are next to each other in memory.
struct Chunk {
  Chunk(const Channels& channels, int64_t chunk)
      : first(channels.first + chunk * lanes),
        count(std::min(lanes, channels.count - chunk * lanes)),
        in_line(channels.fold == 1 && count == lanes &&
                first % channels.block + lanes <= channels.block) {}
  int64_t first, count;
  bool in_line;
};

HWY_INLINE int64_t offset_of(const Channels& c, int64_t channel, int64_t y, int64_t x) {
  return ((channel / c.block * c.height + y) * c.width + x) * c.block + channel % c.block;
}

// The part of a patch or tile that lies in the image.
struct Area {
  Area(const Channels& c, int64_t y, int64_t x, int64_t edge)
      : top(std::max<int64_t>(0, -y)),
        bottom(std::min(edge, c.height - y)),
        left(std::max<int64_t>(0, -x)),
        right(std::min(edge, c.width - x)) {}
  [[nodiscard]] bool is_all(int64_t edge) const {
    return top == 0 && left == 0 && bottom == edge && right == edge;
  }
  int64_t top, bottom, left, right;
};

// Copies the patch's part in the image to `patch`, and 0 to the rest.
template <class T>
void gather(const T* image, const Channels& c, const Chunk& chunk, int64_t y, int64_t x,
            int64_t edge, float* patch) {
  const Area area(c, y, x, edge);
  std::fill_n(patch, edge * edge * lanes, 0.0F);
  for (int64_t i = area.top; i < area.bottom; ++i) {
    for (int64_t k = area.left; k < area.right; ++k) {
      float* target = patch + (i * edge + k) * lanes;
      if (chunk.in_line) {
        store_vector(load_vector(image + offset_of(c, chunk.first, y + i, x + k)), target);
        continue;
      }
      for (int64_t lane = 0; lane < chunk.count; ++lane) {
        target[lane] = cpu::load(image[offset_of(c, chunk.first + lane, y + i, x + k)]);
      }
    }
  }
}

// Of a folded image: lanes next to each other are pixels next to each other in a row.
template <int Fold, class T>
void gather_folded(const T* image, const Channels& c, const Chunk& chunk, int64_t y, int64_t x,
                   int64_t edge, float* patch) {
  std::fill_n(patch, edge * edge * lanes, 0.0F);
  for (int64_t lane = 0; lane < chunk.count; lane += Fold) {
    const int64_t index = (chunk.first + lane) / Fold, channel = index / Fold;
    const bool is_inside = c.block == 1 && x >= 0 && x + edge * Fold <= c.width;
    for (int64_t i = 0; i < edge; ++i) {
      const int64_t row = y + i * Fold + index % Fold;
      if (row < 0 || row >= c.height) continue;
      float* target = patch + i * edge * lanes + lane;
      for (int64_t k = 0; is_inside && k < edge; ++k) {
        const T* source = image + offset_of(c, channel, row, x + k * Fold);
        for (int64_t pixel = 0; pixel < Fold; ++pixel) {
          target[k * lanes + pixel] = cpu::load(source[pixel]);
        }
      }
      const int64_t begin = std::max<int64_t>(0, -x), end = std::min(edge * Fold, c.width - x);
      for (int64_t k = begin; !is_inside && k < end; ++k) {
        target[k / Fold * lanes + k % Fold] = cpu::load(image[offset_of(c, channel, row, x + k)]);
      }
    }
  }
}

template <class T>
void scatter(const float* tile, const Channels& c, const Chunk& chunk, int64_t y, int64_t x,
             const Area& area, int64_t edge, T* image) {
  for (int64_t i = area.top; i < area.bottom; ++i) {
    for (int64_t k = area.left; k < area.right; ++k) {
      const float* source = tile + (i * edge + k) * lanes;
      if (chunk.in_line) {
        store_vector(load_vector(source), image + offset_of(c, chunk.first, y + i, x + k));
        continue;
      }
      for (int64_t lane = 0; lane < chunk.count; ++lane) {
        cpu::store(source[lane], image[offset_of(c, chunk.first + lane, y + i, x + k)]);
      }
    }
  }
}

template <class M, class T>
void transform_patches(const void* tensor, const Channels& channels, const Grid& grid,
                       const Range& tiles, int64_t chunk, const Transformed& form,
                       float* transformed) {
  constexpr int64_t edge = M::columns;
  const Chunk part(channels, chunk);
  const auto collect = channels.fold == 4   ? gather_folded<4, T>
                       : channels.fold == 2 ? gather_folded<2, T>
                                            : gather<T>;
  HWY_ALIGN float patch[edge * edge * lanes];
  float* target = transformed + chunk * form.items * lanes;
  Position at(grid, tiles.begin);
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, target += lanes, at.advance(grid)) {
    const int64_t y = at.row * grid.step - grid.pad_h, x = at.column * grid.step - grid.pad_w;
    const T* image = static_cast<const T*>(tensor) + at.image * channels.row;
    if (part.in_line && Area(channels, y, x, edge).is_all(edge)) {
      transform<M>(image + offset_of(channels, part.first, y, x), channels.width * channels.block,
                   channels.block, target, form.value_stride);
    } else {
      collect(image, channels, part, y, x, edge, patch);
      transform<M>(patch, edge * lanes, lanes, target, form.value_stride);
    }
  }
  for (int64_t item = tiles.end - tiles.begin; item < form.items; ++item, target += lanes) {
    for (int64_t value = 0; value < M::rows * M::rows; ++value) {
      hn::StoreU(hn::Zero(D()), D(), target + value * form.value_stride);
    }
  }
}

template <class M, class T>
void transform_outputs(const float* transformed, const Transformed& form, const Grid& grid,
                       const Range& tiles, int64_t chunk, const float* bias,
                       const Channels& channels, void* tensor) {
  constexpr int64_t edge = M::rows;
  const Chunk part(channels, chunk);
  HWY_ALIGN float start[lanes] = {};
  if (bias != nullptr) std::copy_n(bias + chunk * lanes, part.count, start);
  const Vector added = hn::Load(D(), start);
  HWY_ALIGN float result[edge * edge * lanes] = {};
  const float* source = transformed + chunk * form.items * lanes;
  Position at(grid, tiles.begin);
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, source += lanes, at.advance(grid)) {
    const int64_t y = at.row * grid.step, x = at.column * grid.step;
    transform<M>(source, M::columns * form.value_stride, form.value_stride, result, lanes);
    if (bias != nullptr) {
      for (int64_t i = 0; i < edge * edge; ++i) {
        hn::Store(hn::Add(hn::Load(D(), result + i * lanes), added), D(), result + i * lanes);
      }
    }
    scatter(result, channels, part, y, x, Area(channels, y, x, edge), edge,
            static_cast<T*>(tensor) + at.image * channels.row);
  }
}

// ---- weights

// The offsets of a depth's weights in a column; -1 where a folded kernel has none.
template <int64_t Edge>
struct Offsets {
  Offsets(const Weights& w, int64_t depth) {
    const int64_t first = depth / (w.fold * w.fold) * w.depth_stride;
    for (int64_t i = 0; i < Edge * Edge; ++i) {
      const int64_t y = i / Edge * w.fold + depth / w.fold % w.fold;
      const int64_t x = i % Edge * w.fold + depth % w.fold, last = w.kernel - 1;
      const int64_t at = w.flipped ? (last - y) * w.kernel + last - x : y * w.kernel + x;
      all[i] = y <= last && x <= last ? first + at : -1;
    }
  }
  int64_t all[Edge * Edge];
};

template <class M>
void transform_weights(const float* plain, const Weights& weights, int64_t chunk,
                       const Transformed& form, float* transformed) {
  constexpr int64_t edge = M::columns, area = edge * edge;
  const int64_t first = chunk * lanes, count = std::min(lanes, weights.columns - first);
  HWY_ALIGN float patch[area * lanes] = {};
  float* target = transformed + chunk * form.items * lanes;
  for (int64_t depth = 0; depth < form.items; ++depth, target += lanes) {
    const Offsets<edge> offsets(weights, depth);
    for (int64_t lane = 0; lane < count; ++lane) {
      const float* source = plain + (first + lane) * weights.column_stride;
      for (int64_t i = 0; i < area; ++i) {
        const bool is_weight = depth < weights.depths && offsets.all[i] >= 0;
        patch[i * lanes + lane] = is_weight ? source[offsets.all[i]] : 0.0F;
      }
    }
    transform<M>(patch, edge * lanes, lanes, target, form.value_stride);
  }
}

template <class M>
void transform_weight_gradients(const float* transformed, const Transformed& form,
                                const Weights& weights, int64_t chunk, const Range& depths,
                                bool adds, float* plain) {
  constexpr int64_t area = M::rows * M::rows;
  const int64_t first = chunk * lanes, count = std::min(lanes, weights.columns - first);
  HWY_ALIGN float result[area * lanes] = {};
  for (int64_t depth = depths.begin; depth < depths.end; ++depth) {
    transform<M>(transformed + (chunk * form.items + depth) * lanes, M::columns * form.value_stride,
                 form.value_stride, result, lanes);
    const Offsets<M::rows> offsets(weights, depth);
    for (int64_t lane = 0; lane < count; ++lane) {
      float* target = plain + (first + lane) * weights.column_stride;
      for (int64_t i = 0; i < area; ++i) {
        if (offsets.all[i] < 0) continue;
        float& weight = target[offsets.all[i]];
        weight = adds ? weight + result[i * lanes + lane] : result[i * lanes + lane];
      }
    }
  }
}

// ---- products

template <int Row, int... Column>
HWY_INLINE void add_row(Vector* sums, const Vector* b, const float* a,
                        std::integer_sequence<int, Column...>) {
  constexpr int width = sizeof...(Column);
  const Vector value = hn::Set(D(), *a);
  ((sums[Row * width + Column] = hn::MulAdd(value, b[Column], sums[Row * width + Column])), ...);
}

template <int Width, int... Row>
HWY_INLINE void add_step(Vector* sums, const float* a, int64_t a_row, const float* b,
                         int64_t b_chunk, std::integer_sequence<int, Row...>) {
  using Columns = std::make_integer_sequence<int, Width>;
  Vector line[Width];
  load(line, b, b_chunk, Columns());
  (add_row<Row>(sums, line, a + Row * a_row, Columns()), ...);
}

template <int Width, int... I>
HWY_INLINE void start_sums(Vector* sums, const float* c, int64_t c_chunk, bool adds,
                           std::integer_sequence<int, I...>) {
  ((sums[I] = adds ? hn::LoadU(D(), c + I % Width * c_chunk + I / Width * lanes) : hn::Zero(D())),
   ...);
}

template <int Width, int... I>
HWY_INLINE void store_sums(const Vector* sums, float* c, int64_t c_chunk,
                           std::integer_sequence<int, I...>) {
  (hn::StoreU(sums[I], D(), c + I % Width * c_chunk + I / Width * lanes), ...);
}

// `Width` chunks of columns by row_block rows. The elements of a row and a depth are at
// a + row * a_row + depth * a_depth, where depths are divided into blocks of `block`, a_block
// apart.
template <int Width, int64_t ARow, int64_t ADepth>
HWY_INLINE void multiply_block(const Product& p, const float* a, int64_t block, const float* b,
                               float* c) {
  using Rows = std::make_integer_sequence<int, row_block>;
  using All = std::make_integer_sequence<int, row_block * Width>;
  Vector sums[row_block * Width];
  start_sums<Width>(sums, c, p.c_chunk, p.adds, All());
  for (int64_t depth = 0; depth < p.depth; depth += block, a += p.a_chunk) {
    const float* step = a;
    for (int64_t i = 0; i < block; ++i, step += ADepth, b += lanes) {
      add_step<Width>(sums, step, ARow, b, p.b_chunk, Rows());
    }
  }
  store_sums<Width>(sums, c, p.c_chunk, All());
}

template <int Width>
void multiply_panel_by_channels(const Product& p, int64_t chunk) {
  for (int64_t row = 0; row < p.rows; row += row_block) {
    multiply_block<Width, lanes, 1>(p, p.a + row * lanes, lanes, p.b + chunk * p.b_chunk,
                                    p.c + chunk * p.c_chunk + row * lanes);
  }
}

template <int Width>
void multiply_panel_by_items(const Product& p, int64_t chunk) {
  for (int64_t row = 0; row < p.rows; row += row_block) {
    multiply_block<Width, 1, lanes>(p, p.a + row / lanes * p.a_chunk + row % lanes, p.depth,
                                    p.b + chunk * p.b_chunk, p.c + chunk * p.c_chunk + row * lanes);
  }
}

using Panels = void (*)(const Product& product, int64_t chunk);

// Panels whose widths differ by at most one.
void multiply_panels(const Product& p, const Panels* panels) {
  const int64_t chunks = p.columns.end - p.columns.begin;
  const int64_t count = (chunks + panel - 1) / panel;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * chunks / count, end = (i + 1) * chunks / count;
    panels[end - begin - 1](p, p.columns.begin + begin);
  }
}

void multiply_channels(const Product& p) {
  constexpr Panels panels[panel] = {multiply_panel_by_channels<1>, multiply_panel_by_channels<2>,
                                    multiply_panel_by_channels<3>};
  multiply_panels(p, panels);
}

void multiply_items(const Product& p) {
  constexpr Panels panels[panel] = {multiply_panel_by_items<1>, multiply_panel_by_items<2>,
                                    multiply_panel_by_items<3>};
  multiply_panels(p, panels);
}

// Sums of rows, of images and of the batch one after the other, which keeps rounding errors small.
template <class T>
void sum_channels(const void* tensor, const Channels& c, int64_t images, int64_t chunk,
                  float* sums) {
  const Chunk part(c, chunk);
  Vector batch = hn::Zero(D());
  HWY_ALIGN float pixel[lanes] = {};
  for (int64_t n = 0; n < images; ++n) {
    const T* image = static_cast<const T*>(tensor) + n * c.row;
    Vector all = hn::Zero(D());
    for (int64_t y = 0; y < c.height; ++y) {
      Vector line = hn::Zero(D());
      for (int64_t x = 0; x < c.width; ++x) {
        if (part.in_line) {
          line = hn::Add(line, load_vector(image + offset_of(c, part.first, y, x)));
          continue;
        }
        for (int64_t lane = 0; lane < part.count; ++lane) {
          pixel[lane] = cpu::load(image[offset_of(c, part.first + lane, y, x)]);
        }
        line = hn::Add(line, hn::Load(D(), pixel));
      }
      all = hn::Add(all, line);
    }
    batch = hn::Add(batch, all);
  }
  hn::StoreU(batch, D(), sums);
}

template <class A, class T>
constexpr ImageTransforms image_transforms() {
  return {transform_patches<typename A::Input, T>,
          transform_patches<Transpose<typename A::Output>, T>,
          transform_outputs<typename A::Output, T>};
}

template <class A>
constexpr Transforms transforms_of() {
  return {image_transforms<A, float>(), image_transforms<A, bfloat16>(),
          transform_weights<typename A::Kernel>,
          transform_weight_gradients<Transpose<typename A::Kernel>>};
}

const Kernels* table() {
  static const Kernels kernels{
      hwy::TargetName(HWY_TARGET),
      lanes,
      row_block,
      panel,
      {transforms_of<F43>(), transforms_of<F23>(), transforms_of<F13>(), transforms_of<F25>()},
      multiply_channels,
      multiply_items,
      sum_channels<float>,
      sum_channels<bfloat16>};
  return &kernels;
}

}  // namespace
}  // namespace tandem::layers::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::layers::winograd {

HWY_EXPORT(table);

const Kernels& kernels() {
  cpu::cap_highway();
  return *HWY_DYNAMIC_DISPATCH(table)();
}

}  // namespace tandem::layers::winograd
#endif
