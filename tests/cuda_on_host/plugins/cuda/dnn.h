// plugins/cuda/dnn.h for a machine without a GPU: the passes of a convolution, written down.
#pragma once

#include <string>

#include "plugins/cuda/teams.h"

namespace tandem::cuda {

struct ConvolutionShape {
  tandem_shape x, weight, y;
  int64_t group;
  struct Pair {
    int64_t h, w;
  } stride, pad, dilation;
};

class Convolution {
 public:
  Convolution(const sdk::Call&, const ConvolutionShape& shape, bool, bool) : shape_(shape) {}

  [[nodiscard]] int64_t scratch_bytes() const { return 256; }
  [[nodiscard]] std::string algorithm() const { return "loops"; }

  void forward(const sdk::Call& call, const float* x, const float* weight, float* y,
               void* scratch) const {
    use(call, scratch);
    const DeviceWork work(call);
    std::vector<double> sums(static_cast<size_t>(sdk::count(shape_.y)));
    for_products([&](size_t i, size_t w, size_t o) {
      sums[o] += static_cast<double>(x[i]) * static_cast<double>(weight[w]);
    });
    for (size_t o = 0; o < sums.size(); ++o) y[o] = static_cast<float>(sums[o]);
  }
  void backward_data(const sdk::Call& call, const float* weight, const float* dy, float* dx,
                     void* scratch) const {
    use(call, scratch);
    const DeviceWork work(call);
    std::vector<double> sums(static_cast<size_t>(sdk::count(shape_.x)));
    for_products([&](size_t i, size_t w, size_t o) {
      sums[i] += static_cast<double>(dy[o]) * static_cast<double>(weight[w]);
    });
    for (size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<float>(sums[i]);
  }
  void backward_weights(const sdk::Call& call, const float* x, const float* dy, float* dw,
                        bool accumulate, void* scratch) const {
    use(call, scratch);
    const DeviceWork work(call);
    std::vector<double> sums(static_cast<size_t>(sdk::count(shape_.weight)));
    for_products([&](size_t i, size_t w, size_t o) {
      sums[w] += static_cast<double>(x[i]) * static_cast<double>(dy[o]);
    });
    for (size_t w = 0; w < sums.size(); ++w) {
      dw[w] = (accumulate ? dw[w] : 0.0F) + static_cast<float>(sums[w]);
    }
  }

 private:
  // Writes over the scratch memory that was asked for, as cuDNN may.
  void use(const sdk::Call& call, void* scratch) const {
    const DeviceWork work(call);
    std::memset(scratch, 0x5A, static_cast<size_t>(scratch_bytes()));
  }

  // body(index in x, in weight, in y) for all products of the convolution.
  template <class Body>
  void for_products(const Body& body) const {
    const tandem_shape &y = shape_.y, &w = shape_.weight;
    for (int64_t n = 0; n < y.n; ++n) {
      for (int64_t o = 0; o < y.c; ++o) {
        for (int64_t i = 0; i < y.h * y.w; ++i) {
          for (int64_t c = 0; c < w.c; ++c) {
            for (int64_t k = 0; k < w.h * w.w; ++k) {
              product(n, o, i / y.w, i % y.w, c, k / w.w, k % w.w, body);
            }
          }
        }
      }
    }
  }
  template <class Body>
  void product(int64_t n, int64_t o, int64_t oh, int64_t ow, int64_t c, int64_t kh, int64_t kw,
               const Body& body) const {
    const tandem_shape &x = shape_.x, &y = shape_.y, &w = shape_.weight;
    const int64_t h = oh * shape_.stride.h - shape_.pad.h + kh * shape_.dilation.h;
    const int64_t v = ow * shape_.stride.w - shape_.pad.w + kw * shape_.dilation.w;
    if (h < 0 || v < 0 || h >= x.h || v >= x.w) return;
    const int64_t channel = o / (y.c / shape_.group) * w.c + c;
    body(static_cast<size_t>(((n * x.c + channel) * x.h + h) * x.w + v),
         static_cast<size_t>(((o * w.c + c) * w.h + kh) * w.w + kw),
         static_cast<size_t>(((n * y.c + o) * y.h + oh) * y.w + ow));
  }

  ConvolutionShape shape_;
};

}  // namespace tandem::cuda
