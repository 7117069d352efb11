// LayerNorm on the cpu. In NHWC the channels of a pixel are contiguous, in blocked layouts those of
// each block. Plain images work, but are slow.
#include <algorithm>
#include <cmath>

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
    for_pixels(call, [&](int64_t pixel) {
      const int64_t at = first_channel(pixel);
      const auto count = static_cast<double>(channels_);
      const auto mean =
          static_cast<float>(sum(at, [x](int64_t i, int64_t) { return x[i]; }) / count);
      const double squares = sum(at, [x, mean](int64_t i, int64_t) {
        const float d = x[i] - mean;
        return d * d;
      });
      const auto factor = static_cast<float>(1 / std::sqrt(squares / count + eps_));
      pass.saved()[2 * pixel] = mean;
      pass.saved()[2 * pixel + 1] = factor;
      if (affine_) {
        const float* w = pass.weight(0);
        const float* b = pass.weight(1);
        for_channels(at,
                     [=](int64_t i, int64_t c) { y[i] = (x[i] - mean) * factor * w[c] + b[c]; });
      } else {
        for_channels(at, [=](int64_t i, int64_t) { y[i] = (x[i] - mean) * factor; });
      }
    });
  }

  // With n = (x - mean) * factor and h = g * weight: (h - mean(h) - n mean(h n)) * factor.
  void backward_data(const Call& call, const Pass& pass) const {
    const float* x = pass.input(0);
    const float* g = pass.output_gradient(0);
    float* dx = pass.input_gradient(0);
    for_pixels(call, [&](int64_t pixel) {
      const int64_t at = first_channel(pixel);
      const float mean = pass.saved()[2 * pixel], factor = pass.saved()[2 * pixel + 1];
      const auto go = [&](auto h) {
        const auto count = static_cast<double>(channels_);
        const auto level = static_cast<float>(sum(at, h) / count);
        const auto projection = static_cast<float>(
            sum(at, [=](int64_t i, int64_t c) { return h(i, c) * ((x[i] - mean) * factor); }) /
            count);
        for_channels(at, [=](int64_t i, int64_t c) {
          dx[i] = (h(i, c) - level - (x[i] - mean) * factor * projection) * factor;
        });
      };
      if (affine_) {
        const float* w = pass.weight(0);
        go([g, w](int64_t i, int64_t c) { return g[i] * w[c]; });
      } else {
        go([g](int64_t i, int64_t) { return g[i]; });
      }
    });
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
  // body(pixel) for the pixels of all rows.
  template <class Body>
  void for_pixels(const Call& call, const Body& body) const {
    const auto range = [&](int64_t begin, int64_t end) {
      for (int64_t pixel = begin; pixel < end; ++pixel) body(pixel);
    };
    tandem::cpu::for_items(call.threads, rows_ * pixels_, channels_,
                           tandem::cpu::vectorized(range));
  }
  // The offset of the pixel's first channel.
  [[nodiscard]] int64_t first_channel(int64_t pixel) const {
    return pixel / pixels_ * channels_ * pixels_ + pixel % pixels_ * block_;
  }
  template <class Body>
  void for_channels(int64_t at, const Body& body) const {
    for (int64_t c = 0; c < channels_; c += block_, at += pixels_ * block_) {
#pragma omp simd
      for (int64_t k = 0; k < block_; ++k) body(at + k, c + k);
    }
  }
  template <class Value>
  [[nodiscard]] double sum(int64_t at, const Value& value) const {
    float part[lanes] = {};
    for (int64_t c = 0; c < channels_; c += block_, at += pixels_ * block_) {
      int64_t k = 0;
      for (; k + lanes <= block_; k += lanes) {
#pragma omp simd
        for (int64_t l = 0; l < lanes; ++l) part[l] += value(at + k + l, c + k + l);
      }
      for (int64_t l = 0; k + l < block_; ++l) part[l] += value(at + k + l, c + k + l);
    }
    double total = 0;
    for (const float lane : part) total += static_cast<double>(lane);
    return total;
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
