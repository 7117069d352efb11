// LayerNorm on the cpu. In NHWC the channels of a pixel are contiguous, in blocked layouts those of
// each block. Plain images work, but are slow.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "layers/layer_norm/layer_norm.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"
#include "plugins/cpu/vectorized.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class LayerNormCpu : public Needs {
 public:
  LayerNormCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        channels_(binding.input(0).shape.c),
        pixels_(binding.input(0).shape.h * binding.input(0).shape.w),
        block_(pixels_ == 1 ? channels_
                            : tandem::cpu::block_of(binding.input(0).layout, channels_)),
        eps_(binding.attributes.number("eps")),
        affine_(binding.attributes.boolean("affine")) {
    saved_bytes = 2 * rows_ * pixels_ * static_cast<int64_t>(sizeof(float));
    if (affine_ && binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) {
      scratch_bytes = parts() * 2 * channels_ * static_cast<int64_t>(sizeof(double));
    }
  }

  static LayoutOptions layouts(const Binding& binding) {
    const Shape& shape = binding.input(0).shape;
    LayoutOptions options = any_layout(shape.c);
    std::swap(options[0], options[1]);
    // One cache line per value: as slow as moving the tensor thirty times.
    options[1].extra_bytes = 30.0 * 8 * static_cast<double>(count(shape));
    return options;
  }

  void forward(const Call& call, const Pass& pass) const {
    const float* x = pass.input(0);
    float* y = pass.output(0);
    for_pixels(call, [&](auto tile, int64_t pixel) {
      using Tile = decltype(tile);
      constexpr int64_t few = Tile::few;
      const int64_t at = first_channel(pixel);
      float* saved = pass.saved() + 2 * pixel;
      float mean[few], factor[few];
      means(sums<Tile>(at, [x](int64_t, int64_t i, int64_t) { return x[i]; }), mean);
      const auto squares = sums<Tile>(at, [x, &mean](int64_t p, int64_t i, int64_t) {
        const float d = x[i] - mean[p];
        return d * d;
      });
      for (int64_t p = 0; p < few; ++p) {
        factor[p] = static_cast<float>(
            1 / std::sqrt(squares[size_t(p)] / static_cast<double>(channels_) + eps_));
        saved[2 * p] = mean[p];
        saved[2 * p + 1] = factor[p];
      }
      if (affine_) {
        const float *w = pass.weight(0), *b = pass.weight(1);
        for_channels<Tile>(at, [=, &mean, &factor](int64_t p, int64_t i, int64_t c) {
          y[i] = (x[i] - mean[p]) * factor[p] * w[c] + b[c];
        });
      } else {
        for_channels<Tile>(at, [=, &mean, &factor](int64_t p, int64_t i, int64_t) {
          y[i] = (x[i] - mean[p]) * factor[p];
        });
      }
    });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float* g = pass.output_gradient(0);
    if (affine_) {
      const float* w = pass.weight(0);
      data_of(call, pass, [g, w](int64_t i, int64_t c) { return g[i] * w[c]; });
    } else {
      data_of(call, pass, [g](int64_t i, int64_t) { return g[i]; });
    }
  }

  // Over chunks of a row's pixels in float, over those of a part in double. The parts do not depend
  // on the number of threads.
  void backward_weights(const Call& call, const Pass& pass) const {
    auto* sums = pass.scratch<double>();
    const auto part = [&](int64_t index) {
      double* mine = sums + index * 2 * channels_;
      std::fill_n(mine, 2 * channels_, 0.0);
      const int64_t end = (index + 1) * units() / parts();
      for (int64_t unit = index * units() / parts(); unit < end; ++unit) {
        add_unit(pass, unit, mine, mine + channels_);
      }
    };
    tandem::cpu::for_parts(call.threads, parts(), tandem::cpu::vectorized(part));
    for (int64_t c = 0; c < channels_; ++c) {
      double weight = 0, bias = 0;
      for (int64_t index = 0; index < parts(); ++index) {
        weight += sums[index * 2 * channels_ + c];
        bias += sums[(index * 2 + 1) * channels_ + c];
      }
      float& dw = pass.weight_gradient(0)[c];
      float& db = pass.weight_gradient(1)[c];
      dw = static_cast<float>(weight) + (pass.accumulate() ? dw : 0.0F);
      db = static_cast<float>(bias) + (pass.accumulate() ? db : 0.0F);
    }
  }

 private:
  // `few` neighboring pixels of a row, with blocks of so many channels; 0: any.
  template <int64_t pixels, int64_t channels>
  struct PixelTile {
    static constexpr int64_t few = pixels, block = channels;
  };
  // body(tile, pixel) for all pixels, those of a tile from `pixel` on. In blocked layouts the
  // channels of a pixel are far from each other, and those of its neighbors near.
  template <class Body>
  void for_pixels(const Call& call, const Body& body) const {
    const auto range = [&](int64_t begin, int64_t end) {
      if (block_ == 16) return for_tiles<16>(begin, end, body);
      if (block_ == 8) return for_tiles<8>(begin, end, body);
      for (int64_t pixel = begin; pixel < end; ++pixel) body(PixelTile<1, 0>(), pixel);
    };
    tandem::cpu::for_items(call.threads, rows_ * pixels_, channels_,
                           tandem::cpu::vectorized(range));
  }
  template <int64_t block, class Body>
  void for_tiles(int64_t begin, int64_t end, const Body& body) const {
    constexpr int64_t neighbors = 4;
    for (int64_t pixel = begin; pixel < end;) {
      if (std::min(end - pixel, pixels_ - pixel % pixels_) >= neighbors) {
        body(PixelTile<neighbors, block>(), pixel);
        pixel += neighbors;
      } else {
        body(PixelTile<1, block>(), pixel);
        ++pixel;
      }
    }
  }
  // With n = (x - mean) * factor and h = g * weight: (h - mean(h) - n mean(h n)) * factor.
  template <class Value>
  void data_of(const Call& call, const Pass& pass, const Value& h) const {
    const float* x = pass.input(0);
    float* dx = pass.input_gradient(0);
    for_pixels(call, [&](auto tile, int64_t pixel) {
      using Tile = decltype(tile);
      constexpr int64_t few = Tile::few;
      const int64_t at = first_channel(pixel);
      const float* saved = pass.saved() + 2 * pixel;
      float level[few], projection[few];
      const auto norm = [x, saved](int64_t p, int64_t i) {
        return (x[i] - saved[2 * p]) * saved[2 * p + 1];
      };
      means(sums<Tile>(at, [&](int64_t, int64_t i, int64_t c) { return h(i, c); }), level);
      means(sums<Tile>(at, [&](int64_t p, int64_t i, int64_t c) { return h(i, c) * norm(p, i); }),
            projection);
      for_channels<Tile>(at, [&](int64_t p, int64_t i, int64_t c) {
        dx[i] = (h(i, c) - level[p] - norm(p, i) * projection[p]) * saved[2 * p + 1];
      });
    });
  }
  // The offset of the pixel's first channel.
  [[nodiscard]] int64_t first_channel(int64_t pixel) const {
    return pixel / pixels_ * channels_ * pixels_ + pixel % pixels_ * block_;
  }
  // body(p, i, c) for the channels c, at i, of pixels p of a tile.
  template <class Tile, class Body>
  void for_channels(int64_t at, const Body& body) const {
    const int64_t block = Tile::block > 0 ? Tile::block : block_;
    for (int64_t c = 0; c < channels_; c += block, at += pixels_ * block) {
      for (int64_t p = 0; p < Tile::few; ++p) {
#pragma omp simd
        for (int64_t k = 0; k < block; ++k) body(p, at + p * block + k, c + k);
      }
    }
  }
  // The sums of value(p, i, c) over the channels of each of the pixels.
  template <class Tile, class Value>
  [[nodiscard]] std::array<double, size_t(Tile::few)> sums(int64_t at, const Value& value) const {
    const int64_t block = Tile::block > 0 ? Tile::block : block_;
    float part[Tile::few][lanes] = {};
    for (int64_t c = 0; c < channels_; c += block, at += pixels_ * block) {
      for (int64_t p = 0; p < Tile::few; ++p) {
        const int64_t first = at + p * block;
        int64_t k = 0;
        for (; k + lanes <= block; k += lanes) {
#pragma omp simd
          for (int64_t l = 0; l < lanes; ++l) part[p][l] += value(p, first + k + l, c + k + l);
        }
#pragma omp simd
        for (int64_t l = 0; l < block % lanes; ++l) {
          part[p][l] += value(p, first + k + l, c + k + l);
        }
      }
    }
    std::array<double, size_t(Tile::few)> totals{};
    for (size_t p = 0; p < totals.size(); ++p) {
      for (const float lane : part[p]) totals[p] += static_cast<double>(lane);
    }
    return totals;
  }
  template <size_t few>
  void means(const std::array<double, few>& totals, float* result) const {
    for (const double total : totals) {
      *result++ = static_cast<float>(total / static_cast<double>(channels_));
    }
  }

  // A unit of backward_weights(): up to `chunk` pixels of a row, all channels.
  [[nodiscard]] int64_t chunks() const {
    return (pixels_ + chunk - 1) / chunk;
  }
  [[nodiscard]] int64_t units() const {
    return rows_ * chunks();
  }
  [[nodiscard]] int64_t parts() const {
    return std::min<int64_t>(16, units());
  }

  void add_unit(const Pass& pass, int64_t unit, double* weight, double* bias) const {
    const int64_t row = unit / chunks(), first = unit % chunks() * chunk;
    const float* saved = pass.saved() + 2 * (row * pixels_ + first);
    const int64_t pixels = std::min(chunk, pixels_ - first);
    for (int64_t c = 0; c < channels_; c += block_) {
      const int64_t at = (row * channels_ + c) * pixels_ + first * block_;
      const float *x = pass.input(0) + at, *g = pass.output_gradient(0) + at;
      int64_t k = 0;
      for (; k + 2 * lanes <= block_; k += 2 * lanes) {
        add_pixels<2 * lanes>(x + k, g + k, saved, pixels, weight + c + k, bias + c + k);
      }
      for (; k + lanes <= block_; k += lanes) {
        add_pixels<lanes>(x + k, g + k, saved, pixels, weight + c + k, bias + c + k);
      }
      for (; k + 8 <= block_; k += 8) {
        add_pixels<8>(x + k, g + k, saved, pixels, weight + c + k, bias + c + k);
      }
      for (; k < block_; ++k) {
        add_pixels<1>(x + k, g + k, saved, pixels, weight + c + k, bias + c + k);
      }
    }
  }
  template <int64_t width>
  void add_pixels(const float* x, const float* g, const float* saved, int64_t pixels,
                  double* weight, double* bias) const {
    float w[width] = {}, b[width] = {};
    for (int64_t pixel = 0; pixel < pixels; ++pixel, x += block_, g += block_) {
      const float mean = saved[2 * pixel], factor = saved[2 * pixel + 1];
#pragma omp simd
      for (int64_t l = 0; l < width; ++l) {
        w[l] += g[l] * ((x[l] - mean) * factor);
        b[l] += g[l];
      }
    }
    for (int64_t l = 0; l < width; ++l) {
      weight[l] += static_cast<double>(w[l]);
      bias[l] += static_cast<double>(b[l]);
    }
  }

  static constexpr int64_t chunk = 64;
  static constexpr int64_t lanes = 16;

  int64_t rows_, channels_, pixels_, block_;
  double eps_;
  bool affine_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "layer_norm", "1.0")
      .layer<LayerNorm>()
      .kernel<LayerNorm, LayerNormCpu>("cpu")
      .table();
}
