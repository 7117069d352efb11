// Convolutions by their definition, in float64, for tests of kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/layer_test.h"

namespace tandem::test {

// All passes of a convolution, in float64.
struct ConvolutionSums {
  ConvolutionSums(const LayerSetup& setup, const PlainTensor& dy, int64_t group, int64_t pad,
                  int64_t stride = 1, int64_t dilation = 1) {
    const PlainTensor &x = setup.inputs[0], &w = setup.weights[0];
    const Shape in = x.shape, out = dy.shape, ws = w.shape;
    y.assign(dy.values.size(), 0);
    dx.assign(x.values.size(), 0);
    dw.assign(w.values.size(), 0);
    db.assign(static_cast<size_t>(out.c), 0);
    const auto at = [](const Shape& s, int64_t n, int64_t c, int64_t h, int64_t i) {
      return static_cast<size_t>(((n * s.c + c) * s.h + h) * s.w + i);
    };
    for (int64_t n = 0; n < out.n; ++n) {
      for (int64_t o = 0; o < out.c; ++o) {
        for (int64_t h = 0; h < out.h; ++h) {
          for (int64_t i = 0; i < out.w; ++i) {
            const size_t to = at(out, n, o, h, i);
            if (setup.weights.size() > 1) {
              y[to] += static_cast<double>(setup.weights[1].values[static_cast<size_t>(o)]);
            }
            const auto gradient = static_cast<double>(dy.values[to]);
            db[static_cast<size_t>(o)] += gradient;
            for (int64_t c = 0; c < ws.c; ++c) {
              for (int64_t k = 0; k < ws.h * ws.w; ++k) {
                const int64_t row = h * stride + k / ws.w * dilation - pad;
                const int64_t column = i * stride + k % ws.w * dilation - pad;
                if (row < 0 || row >= in.h || column < 0 || column >= in.w) continue;
                const size_t from = at(in, n, o / (out.c / group) * ws.c + c, row, column);
                const size_t weight = at(ws, o, c, k / ws.w, k % ws.w);
                y[to] +=
                    static_cast<double>(x.values[from]) * static_cast<double>(w.values[weight]);
                dx[from] += gradient * static_cast<double>(w.values[weight]);
                dw[weight] += gradient * static_cast<double>(x.values[from]);
              }
            }
          }
        }
      }
    }
  }
  std::vector<double> y, dx, dw, db;
};

// The largest difference, over the largest value of `b`.
template <class Value>
inline double difference(const std::vector<float>& a, const std::vector<Value>& b) {
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto expected = static_cast<double>(b[i]);
    most = std::max(most, std::abs(static_cast<double>(a[i]) - expected));
    largest = std::max(largest, std::abs(expected));
  }
  return most / largest;
}

// All passes of a convolution as the sums in float64.
inline void expect_as_sums(const LayerSetup& setup, LayerRun& run, int64_t group, int64_t pad,
                           int64_t stride, int64_t dilation) {
  const PlainTensor y = run.forward()[0], dy = random_tensor(y.shape, 4);
  const ConvolutionSums sums(setup, dy, group, pad, stride, dilation);
  EXPECT_LE(difference(y.values, sums.y), 1e-6);
  EXPECT_LE(difference(run.backward_data({dy})[0].values, sums.dx), 1e-6);
  const std::vector<PlainTensor> gradients = run.backward_weights({dy});
  EXPECT_LE(difference(gradients[0].values, sums.dw), 2e-6);
  if (gradients.size() > 1) {
    EXPECT_LE(difference(gradients[1].values, sums.db), 2e-6);
  }
}

// Gradients that are added to others are their sum, up to `tolerance`.
inline void expect_added_weight_gradients(const LayerSetup& setup, double tolerance = 0) {
  LayerRun run(setup);
  const PlainTensor dy = random_tensor(run.forward()[0].shape, 4);
  const std::vector<PlainTensor> alone = run.backward_weights({dy}), start = setup.weights;
  const std::vector<PlainTensor> added = run.backward_weights({dy}, start);
  for (size_t i = 0; i < start.size(); ++i) {
    std::vector<float> sums = alone[i].values;
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += start[i].values[k];
    EXPECT_LE(difference(added[i].values, sums), tolerance);
  }
}

}  // namespace tandem::test
