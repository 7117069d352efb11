// plugins/cuda/dnn.h for a machine without a GPU: the passes of a convolution by their definition.
#pragma once

#include <string>

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/dnn_algorithms.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/rounded_to_tf32.h"
#include "plugins/cuda/teams.h"

namespace tandem::cuda {

class Convolution {
 public:
  // Measured, or given by number: the values are the same.
  Convolution(const sdk::Call&, const ConvolutionShape& shape, const ConvolutionKind& kind,
              bool backward_data, bool backward_weights, const ConvolutionChoice& how,
              ConvolutionEpilogue epilogue)
      : shape_(shape), kind_(kind), epilogue_(epilogue) {
    if (!how.is_measured()) return;
    ConvolutionAlgorithms algorithms{ConvolutionAlgorithm{1}};
    algorithms[0]->adds_bias = epilogue.adds_bias;
    if (backward_data) algorithms[1] = ConvolutionAlgorithm{1};
    if (backward_weights) algorithms[2] = ConvolutionAlgorithm{1};
    if (how.recorded != nullptr) algorithms = read_algorithms(how.recorded);
    for (const auto& one : algorithms) {
      if (one && one->engine >= engine_count) {
        throw sdk::unsupported("there is no engine ", one->engine);
      }
    }
    measured_ = how.recorded != nullptr ? how.recorded : text_of(algorithms, true);
  }

  [[nodiscard]] int64_t scratch_bytes() const { return 256; }
  [[nodiscard]] std::string algorithm() const {
    if (!measured_.empty()) return measured_;
    return kind_.channels_last ? "loops, channels last" : "loops";
  }
  [[nodiscard]] bool adds_bias() const { return epilogue_.adds_bias; }

  void forward(const sdk::Call& call, const void* x, const void* weight, const void* bias, void* y,
               void* scratch) const {
    use(call, scratch);
    const DeviceWork work(call);
    std::vector<double> sums(static_cast<size_t>(sdk::count(shape_.y)));
    for_products([&](size_t i, size_t w, size_t o) { sums[o] += value(x, i) * value(weight, w); });
    for (size_t i = 0; i < sums.size() && epilogue_.adds_bias; ++i) {
      const float sum = static_cast<float>(sums[i]) + element(bias, channel_of(i));
      sums[i] = epilogue_.rectifies && sum < 0 ? 0.0 : static_cast<double>(sum);
    }
    write(sums, y);
  }
  void backward_data(const sdk::Call& call, const void* weight, const void* dy, void* dx,
                     void* scratch) const {
    use(call, scratch);
    const DeviceWork work(call);
    std::vector<double> sums(static_cast<size_t>(sdk::count(shape_.x)));
    for_products([&](size_t i, size_t w, size_t o) { sums[i] += value(dy, o) * value(weight, w); });
    write(sums, dx);
  }
  void backward_weights(const sdk::Call& call, const void* x, const void* dy, void* dw,
                        void* scratch) const {
    use(call, scratch);
    const DeviceWork work(call);
    std::vector<double> sums(static_cast<size_t>(sdk::count(shape_.weight)));
    for_products([&](size_t i, size_t w, size_t o) { sums[w] += value(x, i) * value(dy, o); });
    write(sums, dw);
  }

 private:
  [[nodiscard]] float element(const void* memory, size_t i) const {
    float result = 0;
    with_elements(kind_.dtype, [&](auto element) {
      result = load(static_cast<const decltype(element)*>(memory)[i]);
    });
    return result;
  }
  // A factor of the products.
  [[nodiscard]] double value(const void* memory, size_t i) const {
    return static_cast<double>(rounded_to_tf32(element(memory, i), kind_.allows_tf32));
  }
  // Of an element of y.
  [[nodiscard]] size_t channel_of(size_t i) const {
    const auto channels = static_cast<size_t>(shape_.y.c);
    const auto pixels = static_cast<size_t>(shape_.y.h * shape_.y.w);
    return kind_.channels_last ? i % channels : i / pixels % channels;
  }
  void write(const std::vector<double>& sums, void* memory) const {
    with_elements(kind_.dtype, [&](auto element) {
      auto* target = static_cast<decltype(element)*>(memory);
      for (size_t i = 0; i < sums.size(); ++i) store(static_cast<float>(sums[i]), target[i]);
    });
  }

  // Writes to all of the scratch memory, as cuDNN may.
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
    body(place(x, n, channel, h, v), place(w, o, c, kh, kw), place(y, n, o, oh, ow));
  }
  [[nodiscard]] size_t place(const tandem_shape& s, int64_t n, int64_t c, int64_t h,
                             int64_t w) const {
    return static_cast<size_t>(kind_.channels_last ? ((n * s.h + h) * s.w + w) * s.c + c
                                                   : ((n * s.c + c) * s.h + h) * s.w + w);
  }

  static constexpr int engine_count = 2;

  ConvolutionShape shape_;
  ConvolutionKind kind_;
  ConvolutionEpilogue epilogue_;
  std::string measured_;
};

}  // namespace tandem::cuda
