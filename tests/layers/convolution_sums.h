// Convolutions by their definition, in float64, for tests of kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/layer_test.h"
#include "tests/support/record_error.h"

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

// What computes a pass ("forward", "backward data", "backward weights") according to the kernel's
// name of its algorithm: the part about the pass, if there are parts, without the instructions.
// oneDNN's names, of which there are many, have colons.
inline std::string algorithm_of(const std::string& pass, const std::string& algorithm) {
  const size_t part = algorithm.find(pass + " ");
  const size_t begin = part == std::string::npos ? 0 : part + pass.size() + 1;
  const std::string name = algorithm.substr(begin, algorithm.find(", backward", begin) - begin);
  if (name.find(':') != std::string::npos) return "oneDNN";
  return std::regex_replace(name, std::regex(", (dilation|AVX|SSE|SSSE|EMU).*"), "");
}

// At most `tolerance` from sums in float64. The error is recorded.
inline void expect_as_sum(const std::string& algorithm, const char* result,
                          const std::vector<float>& actual, const std::vector<double>& sum,
                          double tolerance) {
  const double error = relative_difference(actual, sum);
  EXPECT_LE(error, tolerance) << result << " by " << algorithm;
  record_error(algorithm + " " + result, error);
}

struct ConvolutionTolerance {
  double y = 1e-6, dx = 1e-6, dw = 2e-6, db = 2e-6;
};

// The passes that the setup wants, as the sums. `name` takes the place of the algorithms' names.
inline void expect_passes_as_sums(const LayerSetup& setup, LayerRun& run, const PlainTensor& dy,
                                  const ConvolutionSums& sums,
                                  const ConvolutionTolerance& tolerance,
                                  const std::string& name = "") {
  const auto expect = [&](const char* pass, const char* result, const std::vector<float>& actual,
                          const std::vector<double>& sum, double most) {
    expect_as_sum(name.empty() ? algorithm_of(pass, run.algorithm()) : name, result, actual, sum,
                  most);
  };
  expect("forward", "output", run.forward()[0].values, sums.y, tolerance.y);
  if ((setup.flags & TANDEM_WANTS_BACKWARD_DATA) != 0) {
    expect("backward data", "input_gradient", run.backward_data({dy})[0].values, sums.dx,
           tolerance.dx);
  }
  const std::vector<PlainTensor> gradients = run.backward_weights({dy});
  expect("backward weights", "weight_gradient", gradients[0].values, sums.dw, tolerance.dw);
  if (gradients.size() > 1) {
    expect("backward weights", "bias_gradient", gradients[1].values, sums.db, tolerance.db);
  }
}

// All passes of a convolution that the setup wants, as the sums in float64. In place of Winograd's
// algorithm the direct one is run, too, only to record its errors.
inline void expect_as_sums(const LayerSetup& setup, LayerRun& run, int64_t group, int64_t pad,
                           int64_t stride, int64_t dilation,
                           const ConvolutionTolerance& tolerance = {}) {
  const PlainTensor dy = random_tensor(run.output_shapes()[0], 4);
  const ConvolutionSums sums(setup, dy, group, pad, stride, dilation);
  expect_passes_as_sums(setup, run, dy, sums, tolerance);
  const std::string algorithm = algorithm_of("forward", run.algorithm());
  if (algorithm.find("winograd") == std::string::npos) return;
  LayerSetup direct = setup;
  direct.parameters.emplace_back("algorithm", "DIRECT");
  LayerRun direct_run(direct);
  expect_passes_as_sums(direct, direct_run, dy, sums, {INFINITY, INFINITY, INFINITY, INFINITY},
                        algorithm + " (direct)");
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
    EXPECT_LE(relative_difference(added[i].values, sums), tolerance);
  }
}

}  // namespace tandem::test
