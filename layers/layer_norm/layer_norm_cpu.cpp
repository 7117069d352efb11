// LayerNorm on the cpu. In NHWC the channels of a pixel are contiguous, in blocked layouts those of
// each block. Plain images work, but are slow.
#include <array>
#include <cmath>

#include "layers/common/groups.h"
#include "layers/layer_norm/layer_norm.h"

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

  // Sums over the pixels in their order; threads divide the channels.
  void backward_weights(const Call& call, const Pass& pass) const {
    const float* x = pass.input(0);
    const float* g = pass.output_gradient(0);
    const float* saved = pass.saved();
    const int64_t parts = (block_ + lanes - 1) / lanes, blocks = channels_ / block_;
    const int64_t floats = rows_ * pixels_ * std::min(block_, lanes);
    tandem::cpu::for_items(call.threads, blocks * parts, floats, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = part % parts * lanes, width = std::min(lanes, block_ - first);
        const int64_t offset = part / parts * pixels_ * block_ + first;
        LaneSums weight{}, bias{};
        for (int64_t row = 0; row < rows_; ++row) {
          add_pixels(x, g, saved + 2 * row * pixels_, offset + row * channels_ * pixels_, width,
                     weight, bias);
        }
        store(pass, part / parts * block_ + first, width, weight, bias);
      }
    });
  }

 private:
  // body(pixel) for the pixels of all rows.
  template <class Body>
  void for_pixels(const Call& call, const Body& body) const {
    tandem::cpu::for_items(call.threads, rows_ * pixels_, channels_,
                           [&](int64_t begin, int64_t end) {
                             for (int64_t pixel = begin; pixel < end; ++pixel) body(pixel);
                           });
  }
  // The offset of the pixel's first channel.
  [[nodiscard]] int64_t first_channel(int64_t pixel) const {
    return pixel / pixels_ * channels_ * pixels_ + pixel % pixels_ * block_;
  }
  template <class Body>
  void for_channels(int64_t at, const Body& body) const {
    for (int64_t c = 0; c < channels_; c += block_, at += pixels_ * block_) {
      for (int64_t k = 0; k < block_; ++k) body(at + k, c + k);
    }
  }
  template <class Value>
  [[nodiscard]] double sum(int64_t at, const Value& value) const {
    std::array<float, lanes> part{};
    for (int64_t c = 0; c < channels_; c += block_, at += pixels_ * block_) {
      int64_t k = 0;
      for (; k + lanes <= block_; k += lanes) {
        for (int64_t l = 0; l < lanes; ++l) {
          part[static_cast<size_t>(l)] += value(at + k + l, c + k + l);
        }
      }
      for (int64_t l = 0; k + l < block_; ++l) {
        part[static_cast<size_t>(l)] += value(at + k + l, c + k + l);
      }
    }
    double total = 0;
    for (const float lane : part) total += static_cast<double>(lane);
    return total;
  }

  // The pixels of one row, for up to `lanes` channels.
  void add_pixels(const float* x, const float* g, const float* saved, int64_t at, int64_t width,
                  LaneSums& weight, LaneSums& bias) const {
    std::array<float, lanes> w{}, b{};
    for (int64_t pixel = 0; pixel < pixels_; ++pixel, at += block_) {
      const float mean = saved[2 * pixel], factor = saved[2 * pixel + 1];
      for (int64_t l = 0; l < width; ++l) {
        const auto lane = static_cast<size_t>(l);
        w[lane] += g[at + l] * ((x[at + l] - mean) * factor);
        b[lane] += g[at + l];
      }
    }
    for (size_t l = 0; l < w.size(); ++l) {
      weight[l] += static_cast<double>(w[l]);
      bias[l] += static_cast<double>(b[l]);
    }
  }
  static void store(const Pass& pass, int64_t channel, int64_t width, const LaneSums& weight,
                    const LaneSums& bias) {
    for (int64_t l = 0; l < width; ++l) {
      const auto lane = static_cast<size_t>(l);
      float& dw = pass.weight_gradient(0)[channel + l];
      float& db = pass.weight_gradient(1)[channel + l];
      dw = static_cast<float>(weight[lane]) + (pass.accumulate() ? dw : 0.0F);
      db = static_cast<float>(bias[lane]) + (pass.accumulate() ? db : 0.0F);
    }
  }

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
