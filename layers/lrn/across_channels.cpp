#include "layers/lrn/across_channels.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/fused_relu.h"
#include "plugins/cpu/team.h"
#include "plugins/cpu/vector.h"

// Inlined code is compiled for the instruction set of the function that it is inlined into.
#define TANDEM_INLINE [[gnu::always_inline]] inline

namespace tandem::layers {

namespace {

using Tile = AcrossChannelsLrn::Tile;
using Terms = AcrossChannelsLrn::Terms;
using cpu::bfloat16;

// Of a tile in the backward pass.
struct Arrays {
  float *squares, *direct, *ratio;
};

// s^-beta and 1 / s.
struct Powers {
  float power, inverse;
};
struct ThreeQuarters {
  TANDEM_INLINE Powers operator()(float s) const {
    const float inverse = 1 / s, root = std::sqrt(inverse);
    return {root * std::sqrt(root), inverse};
  }
};
struct AnyPower {
  float beta;
  TANDEM_INLINE Powers operator()(float s) const { return {std::pow(s, -beta), 1 / s}; }
};

// run(offset in the tile, offset in the tensor, floats) for all contiguous runs of a tile. The
// length of a block that fits a vector is a compile-time constant.
template <class Run>
TANDEM_INLINE void for_runs(const Tile& tile, const Run& run) {
  const auto for_pixels = [&](int64_t group, auto floats) __attribute__((always_inline)) {
    const int64_t in_tile = group * tile.group_step, in_tensor = group * tile.area * tile.block;
    for (int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
      run(in_tile + pixel * tile.pixel_step, in_tensor + pixel * tile.block, floats);
    }
  };
  for (int64_t group = 0; group < tile.groups; ++group) {
    if (tile.block == 1) {
      run(group * tile.group_step, group * tile.area, tile.pixels);
    } else if (tile.block == 16) {
      for_pixels(group, std::integral_constant<int64_t, 16>());
    } else {
      for_pixels(group, tile.block);
    }
  }
}

// The sum over the neighboring channels. Half 0: `half` is the number of neighbors on each side.
template <int Half>
TANDEM_INLINE float about(const float* value, int64_t stride, int64_t half) {
  float sum = *value;
  for (int64_t d = 1; d <= (Half > 0 ? Half : half); ++d) {
    sum += value[-d * stride] + value[d * stride];
  }
  return sum;
}

// The passes over one tile. x, y and their gradients point to the tensor, of float or bfloat16.
template <int Half, class Power, class Element>
struct Passes {
  TANDEM_INLINE static void normalize(const Tile& tile, Terms t, Power power, const Element* x,
                                      const float* squares, Element* y) {
    for_runs(
        tile, [ =, stride = tile.stride ](int64_t at, int64_t from,
                                          auto floats) __attribute__((always_inline)) {
#pragma omp simd
          for (int64_t i = 0; i < floats; ++i) {
            const float s = t.constant + t.scale * about<Half>(squares + at + i, stride, t.half);
            cpu::store(cpu::load(x[from + i]) * power(s).power, y[from + i]);
          }
        });
  }

  // dy s^-beta and dy x s^(-beta - 1)
  TANDEM_INLINE static void ratios(const Tile& tile, Terms t, Power power, const Element* x,
                                   const Element* dy, const float* squares, float* direct,
                                   float* ratio) {
    for_runs(
        tile, [ =, stride = tile.stride ](int64_t at, int64_t from,
                                          auto floats) __attribute__((always_inline)) {
#pragma omp simd
          for (int64_t i = 0; i < floats; ++i) {
            const Powers p =
                power(t.constant + t.scale * about<Half>(squares + at + i, stride, t.half));
            const float value = cpu::load(dy[from + i]) * p.power;
            direct[at + i] = value;
            ratio[at + i] = value * cpu::load(x[from + i]) * p.inverse;
          }
        });
  }

  TANDEM_INLINE static void subtract(const Tile& tile, Terms t, const Element* x,
                                     const float* direct, const float* ratio, Element* dx) {
    const float factor = 2 * t.scale * t.beta;
    for_runs(
        tile, [ =, stride = tile.stride ](int64_t at, int64_t from,
                                          auto floats) __attribute__((always_inline)) {
#pragma omp simd
          for (int64_t i = 0; i < floats; ++i) {
            const float others = about<Half>(ratio + at + i, stride, t.half);
            cpu::store(direct[at + i] - factor * cpu::load(x[from + i]) * others, dx[from + i]);
          }
        });
  }
};

template <class Element>
TANDEM_INLINE void square(const Tile& tile, const Element* x, float* squares) {
  for_runs(
      tile, [=](int64_t at, int64_t from, auto floats) __attribute__((always_inline)) {
#pragma omp simd
        for (int64_t i = 0; i < floats; ++i) {
          const float value = cpu::load(x[from + i]);
          squares[at + i] = value * value;
        }
      });
}

template <class Element>
TANDEM_INLINE void forward(const Tile& tile, const Terms& t, const Element* x, float* squares,
                           Element* y) {
  square(tile, x, squares);
  if (t.beta == 0.75F && t.half == 2) {
    Passes<2, ThreeQuarters, Element>::normalize(tile, t, {}, x, squares, y);
  } else if (t.beta == 0.75F) {
    Passes<0, ThreeQuarters, Element>::normalize(tile, t, {}, x, squares, y);
  } else {
    Passes<0, AnyPower, Element>::normalize(tile, t, {t.beta}, x, squares, y);
  }
}

template <int Half, class Power, class Element>
TANDEM_INLINE void backward_by(const Tile& tile, const Terms& t, Power power, const Element* x,
                               const Element* dy, const Arrays& arrays, Element* dx) {
  using All = Passes<Half, Power, Element>;
  All::ratios(tile, t, power, x, dy, arrays.squares, arrays.direct, arrays.ratio);
  All::subtract(tile, t, x, arrays.direct, arrays.ratio, dx);
}

template <class Element>
TANDEM_INLINE void backward(const Tile& tile, const Terms& t, const Element* x, const Element* dy,
                            const Arrays& arrays, Element* dx) {
  square(tile, x, arrays.squares);
  if (t.beta == 0.75F && t.half == 2) {
    backward_by<2>(tile, t, ThreeQuarters{}, x, dy, arrays, dx);
  } else if (t.beta == 0.75F) {
    backward_by<0>(tile, t, ThreeQuarters{}, x, dy, arrays, dx);
  } else {
    backward_by<0>(tile, t, AnyPower{t.beta}, x, dy, arrays, dx);
  }
}

// The compiler clones no templates.
TANDEM_CPU_VECTOR void forward_tile(const Tile& tile, const Terms& t, const float* x,
                                    float* squares, float* y) {
  forward(tile, t, x, squares, y);
}
TANDEM_CPU_VECTOR void forward_tile(const Tile& tile, const Terms& t, const bfloat16* x,
                                    float* squares, bfloat16* y) {
  forward(tile, t, x, squares, y);
}
TANDEM_CPU_VECTOR void backward_tile(const Tile& tile, const Terms& t, const float* x,
                                     const float* dy, const Arrays& arrays, float* dx) {
  backward(tile, t, x, dy, arrays, dx);
}
TANDEM_CPU_VECTOR void backward_tile(const Tile& tile, const Terms& t, const bfloat16* x,
                                     const bfloat16* dy, const Arrays& arrays, bfloat16* dx) {
  backward(tile, t, x, dy, arrays, dx);
}

}  // namespace

AcrossChannelsLrn::AcrossChannelsLrn(const sdk::Attributes& attributes, const tandem_tensor& tensor,
                                     bool follows_relu)
    : placement_(tensor), dtype_(tensor.dtype), follows_relu_(follows_relu) {
  // several tiles of this size fit the L1 cache
  constexpr int64_t max_floats = 2048, max_pixels = 64;
  const int64_t channels = tensor.shape.c, block = placement_.block;
  const int64_t size = attributes.integer("local_size");
  const int64_t half = std::min((size - 1) / 2, channels), area = tensor.shape.h * tensor.shape.w;
  const int64_t pixels =
      std::clamp<int64_t>(max_floats / (channels + 2 * half), 1, std::min(max_pixels, area));
  tile_ = {channels / block, block, area, pixels, block, channels + 2 * half, 1};
  if (block == 1) tile_ = {channels, 1, area, pixels, pixels, 1, pixels};
  terms_ = {half, static_cast<float>(attributes.number("alpha")) / static_cast<float>(size),
            static_cast<float>(attributes.number("beta")),
            static_cast<float>(attributes.number("k"))};
}

int64_t AcrossChannelsLrn::tile_floats() const {
  const int64_t floats = tile_.pixels * (placement_.shape.c + 2 * terms_.half);
  return (floats + 2 * terms_.half * tile_.stride + 15) / 16 * 16;
}

int64_t AcrossChannelsLrn::scratch_bytes(int32_t threads) const {
  constexpr int64_t max_arrays = 3;
  return threads * max_arrays * tile_floats() * static_cast<int64_t>(sizeof(float));
}

// body(tile, offset of its first element in the tensor, its first array, floats of an array). The
// zeros of the arrays are never overwritten.
template <class Body>
void AcrossChannelsLrn::for_tiles(const sdk::Call& call, float* scratch, int arrays,
                                  const Body& body) const {
  const int64_t tiles_of_image = (tile_.area + tile_.pixels - 1) / tile_.pixels;
  const int64_t tiles = placement_.shape.n * tiles_of_image, parts = call.threads;
  const int64_t floats = tile_floats(), margin = terms_.half * tile_.stride;
  cpu::for_parts(call.threads, parts, [&](int64_t part) {
    float* mine = scratch + part * arrays * floats;
    std::fill_n(mine, arrays * floats, 0.0F);
    Tile tile = tile_;
    for (int64_t i = tiles * part / parts; i < tiles * (part + 1) / parts; ++i) {
      const int64_t first = i % tiles_of_image * tile_.pixels;
      tile.pixels = std::min(tile_.pixels, tile_.area - first);
      body(tile, i / tiles_of_image * placement_.row_size() + first * placement_.block,
           mine + margin, floats);
    }
  });
}

void AcrossChannelsLrn::forward(const sdk::Call& call, const sdk::Pass& pass) const {
  cpu::with_elements(dtype_, [&]<class Element>(Element) {
    const auto* x = static_cast<const Element*>(pass.raw.inputs[0]);
    auto* y = static_cast<Element*>(pass.raw.outputs[0]);
    for_tiles(call, pass.scratch(), 1, [&](const Tile& tile, int64_t at, float* array, int64_t) {
      forward_tile(tile, terms_, x + at, array, y + at);
    });
  });
}

void AcrossChannelsLrn::backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
  cpu::with_elements(dtype_, [&]<class Element>(Element) {
    const auto* x = static_cast<const Element*>(pass.raw.inputs[0]);
    const auto* dy = static_cast<const Element*>(pass.raw.output_gradients[0]);
    auto* dx = static_cast<Element*>(pass.raw.input_gradients[0]);
    for_tiles(call, pass.scratch(), 3, [&](const Tile& tile, int64_t at, float* a, int64_t floats) {
      backward_tile(tile, terms_, x + at, dy + at, {a, a + floats, a + 2 * floats}, dx + at);
      if (!follows_relu_) return;
      for_runs(tile, [&](int64_t /*in_tile*/, int64_t run, int64_t count) {
        cpu::pass_through_relu(x + at + run, dx + at + run, count);
      });
    });
  });
}

}  // namespace tandem::layers
