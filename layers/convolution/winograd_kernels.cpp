// Compiled once for each of Highway's targets (plugins/cpu/highway.h). No lambdas: clang would not
// compile them for the target.
#include "layers/convolution/winograd_kernels.h"

#include <algorithm>

#include "layers/convolution/winograd_matrices.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/convolution/winograd_kernels.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

#include "layers/convolution/winograd_operands-inl.h"
#include "layers/convolution/winograd_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::winograd::HWY_NAMESPACE {
namespace {

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

// How many pixels, `distance` apart, are in `extent` pixels. The usual distance is 1, and four
// divisions a tile would take as long as a part of its transform.
int64_t pixels_in(int64_t extent, int64_t distance) {
  const int64_t pixels = std::max<int64_t>(0, extent);
  return distance == 1 ? pixels : (pixels + distance - 1) / distance;
}

// The part of a patch or tile that lies in the image; its pixels are `distance` apart.
struct Area {
  Area(const Channels& c, int64_t y, int64_t x, int64_t edge, int64_t apart)
      : distance(apart),
        top(pixels_in(-y, apart)),
        bottom(std::min(edge, pixels_in(c.height - y, apart))),
        left(pixels_in(-x, apart)),
        right(std::min(edge, pixels_in(c.width - x, apart))) {}
  [[nodiscard]] bool is_all(int64_t edge) const {
    return top == 0 && left == 0 && bottom == edge && right == edge;
  }
  int64_t distance, top, bottom, left, right;
};

template <class T>
void gather_lanes(const T* image, const Channels& c, const Chunk& chunk, int64_t y, int64_t x,
                  const Area& area, int64_t edge, float* patch) {
  for (int64_t i = area.top; i < area.bottom; ++i) {
    for (int64_t k = area.left; k < area.right; ++k) {
      for (int64_t lane = 0; lane < chunk.count; ++lane) {
        patch[(i * edge + k) * lanes + lane] = cpu::load(
            image[offset_of(c, chunk.first + lane, y + i * area.distance, x + k * area.distance)]);
      }
    }
  }
}

// Copies the patch's part in the image to `patch`, and 0 to the rest.
template <class T>
void gather(const T* image, const Channels& c, const Chunk& chunk, int64_t y, int64_t x,
            const Area& area, int64_t edge, float* patch) {
  std::fill_n(patch, edge * edge * lanes, 0.0F);
  if (!chunk.in_line) return gather_lanes(image, c, chunk, y, x, area, edge, patch);
  // Vectors may alias anything, so that what a loop needs of `c` and `area` is computed before it.
  const int64_t pixel = c.block * area.distance, line = c.width * pixel;
  const int64_t left = area.left, right = area.right;
  const T* source =
      image + offset_of(c, chunk.first, y + area.top * area.distance, x + left * area.distance);
  for (int64_t i = area.top, end = area.bottom; i < end; ++i, source += line) {
    for (int64_t k = left; k < right; ++k) {
      store_vector(load_vector(source + (k - left) * pixel), patch + (i * edge + k) * lanes);
    }
  }
}

// Of a folded image: lanes next to each other are pixels next to each other in a row.
template <int Fold, class T>
void gather_folded(const T* image, const Channels& c, const Chunk& chunk, int64_t y, int64_t x,
                   const Area&, int64_t edge, float* patch) {
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

// An image of the result, and the same image of what a ReLU before the layer made, or null.
template <class T>
struct Target {
  T* image;
  const T* rectified;
  float least;  // as that of Finish
  [[nodiscard]] bool is_rectified() const { return rectified != nullptr || least == 0; }
};

template <bool Rectified, class T>
void scatter_lanes(const float* tile, const Channels& c, const Chunk& chunk, int64_t y, int64_t x,
                   const Area& area, int64_t edge, const Target<T>& target) {
  for (int64_t i = area.top; i < area.bottom; ++i) {
    for (int64_t k = area.left; k < area.right; ++k) {
      for (int64_t lane = 0; lane < chunk.count; ++lane) {
        const int64_t at =
            offset_of(c, chunk.first + lane, y + i * area.distance, x + k * area.distance);
        T& stored = target.image[at];
        cpu::store(tile[(i * edge + k) * lanes + lane], stored);
        if constexpr (Rectified) {
          const bool is_passed = target.rectified == nullptr || cpu::load(target.rectified[at]) > 0;
          if (!is_passed || cpu::load(stored) < target.least) cpu::store(0.0F, stored);
        }
      }
    }
  }
}

template <bool Rectified, class T>
void scatter(const float* tile, const Channels& c, const Chunk& chunk, int64_t y, int64_t x,
             const Area& area, int64_t edge, const Target<T>& target) {
  if (!chunk.in_line) return scatter_lanes<Rectified>(tile, c, chunk, y, x, area, edge, target);
  const int64_t pixel = c.block * area.distance, line = c.width * pixel;
  const int64_t left = area.left, right = area.right;
  const Vector zero = hn::Zero(D()), least = hn::Set(D(), target.least);
  const T* rectified = target.rectified;
  T* image = target.image;
  int64_t start = offset_of(c, chunk.first, y + area.top * area.distance, x + left * area.distance);
  for (int64_t i = area.top, end = area.bottom; i < end; ++i, start += line) {
    for (int64_t k = left, at = start; k < right; ++k, at += pixel) {
      Vector value = rounded_vector<T>(load_vector(tile + (i * edge + k) * lanes));
      if constexpr (Rectified) value = hn::IfThenZeroElse(hn::Lt(value, least), value);
      if (Rectified && rectified != nullptr) {
        value = hn::IfThenElseZero(hn::Gt(load_vector(rectified + at), zero), value);
      }
      store_vector(value, image + at);
    }
  }
}

template <class M, class T, class Operand>
void transform_patches(const void* tensor, const Channels& channels, const Grid& grid,
                       const Range& tiles, int64_t chunk, const Transformed& form,
                       float* transformed) {
  constexpr int64_t edge = M::columns;
  const Chunk part(channels, chunk);
  const auto collect = channels.fold == 4   ? gather_folded<4, T>
                       : channels.fold == 2 ? gather_folded<2, T>
                                            : gather<T>;
  HWY_ALIGN float patch[edge * edge * lanes];
  Operand operand(transformed + chunk * form.chunk_stride, form.value_stride);
  Position at(grid, tiles.begin);
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, at.advance(grid)) {
    const int64_t y = grid.top(at.row), x = grid.left(at.column);
    const Area area(channels, y, x, edge, grid.distance);
    const T* image = static_cast<const T*>(tensor) + at.image * channels.row;
    if (part.in_line && area.is_all(edge)) {
      const int64_t pixel = channels.block * grid.distance;
      operand.add(image + offset_of(channels, part.first, y, x), channels.width * pixel, pixel);
    } else {
      collect(image, channels, part, y, x, area, edge, patch);
      operand.add(patch, edge * lanes, lanes);
    }
  }
  operand.finish(tiles.end - tiles.begin, form.items);
}

template <class M, class T>
void transform_outputs(const float* transformed, const Transformed& form, const Grid& grid,
                       const Range& tiles, int64_t chunk, const Finish& finish,
                       const Channels& channels, void* tensor) {
  constexpr int64_t edge = M::rows;
  const Chunk part(channels, chunk);
  HWY_ALIGN float start[lanes] = {};
  const float* bias = finish.bias;
  if (bias != nullptr) std::copy_n(bias + chunk * lanes, part.count, start);
  const Vector added = hn::Load(D(), start);
  HWY_ALIGN float result[edge * edge * lanes] = {};
  const float* source = transformed + chunk * form.chunk_stride;
  Position at(grid, tiles.begin);
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, source += lanes, at.advance(grid)) {
    const int64_t y = grid.top(at.row), x = grid.left(at.column);
    transform<M>(source, M::columns * form.value_stride, form.value_stride, result, lanes);
    if (bias != nullptr) {
      for (int64_t i = 0; i < edge * edge; ++i) {
        hn::Store(hn::Add(hn::Load(D(), result + i * lanes), added), D(), result + i * lanes);
      }
    }
    const int64_t image = at.image * channels.row;
    const T* rectified = static_cast<const T*>(finish.rectified);
    const Target<T> target{static_cast<T*>(tensor) + image,
                           rectified == nullptr ? nullptr : rectified + image, finish.least};
    const Area area(channels, y, x, edge, grid.distance);
    target.is_rectified() ? scatter<true>(result, channels, part, y, x, area, edge, target)
                          : scatter<false>(result, channels, part, y, x, area, edge, target);
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

template <class M, class Operand>
void transform_weights(const float* plain, const Weights& weights, int64_t chunk,
                       const Transformed& form, float* transformed) {
  constexpr int64_t edge = M::columns, area = edge * edge;
  const int64_t first = chunk * lanes, count = std::min(lanes, weights.columns - first);
  HWY_ALIGN float patch[area * lanes] = {};
  Operand operand(transformed + chunk * form.chunk_stride, form.value_stride);
  for (int64_t depth = 0; depth < form.items; ++depth) {
    const Offsets<edge> offsets(weights, depth);
    for (int64_t lane = 0; lane < count; ++lane) {
      const float* source = plain + (first + lane) * weights.column_stride;
      for (int64_t i = 0; i < area; ++i) {
        const bool is_weight = depth < weights.depths && offsets.all[i] >= 0;
        patch[i * lanes + lane] = is_weight ? source[offsets.all[i]] : 0.0F;
      }
    }
    operand.add(patch, edge * lanes, lanes);
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
    transform<M>(transformed + chunk * form.chunk_stride + depth * lanes,
                 M::columns * form.value_stride, form.value_stride, result, lanes);
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

template <class A, class T, class Element, template <class> class Items>
constexpr ImageTransforms image_transforms() {
  using Gradient = Transpose<typename A::Output>;
  return {transform_patches<typename A::Input, T, ByChannels<typename A::Input, Element>>,
          transform_patches<typename A::Input, T, Items<typename A::Input>>,
          transform_patches<Gradient, T, Items<Gradient>>,
          transform_outputs<typename A::Output, T>};
}

template <class A, class Element, template <class> class Items>
constexpr Transforms transforms_of() {
  return {image_transforms<A, float, Element, Items>(),
          image_transforms<A, bfloat16, Element, Items>(),
          transform_weights<typename A::Kernel, Items<typename A::Kernel>>,
          transform_weight_gradients<Transpose<typename A::Kernel>>};
}

template <class Element, template <class> class Items>
constexpr Arithmetic arithmetic() {
  return {Element::depths_in_word,
          {transforms_of<F43, Element, Items>(), transforms_of<F23, Element, Items>(),
           transforms_of<F13, Element, Items>(), transforms_of<F25, Element, Items>()},
          multiply_channels<Element>,
          multiply_items<Element>};
}

const Kernels* table() {
  static const Kernels kernels {
    hwy::TargetName(HWY_TARGET), lanes, row_block, panel, arithmetic<Float32, FloatItems>(),
#if HWY_TARGET == HWY_AVX3
        arithmetic<Bfloat16, ByItems>(),
#else
        {},
#endif
        sum_channels<float>, sum_channels<bfloat16>
  };
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
