// Convolutions by Winograd's algorithm, compared with sums in float64 and with direct convolutions.
#include <gmock/gmock.h>

#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

LayerSetup convolution(const Shape& input, int64_t outputs, int64_t group, const char* pad) {
  return {.type = "Convolution",
          .parameters = {{"num_output", std::to_string(outputs)},
                         {"kernel_size", "3"},
                         {"pad", pad},
                         {"group", std::to_string(group)}},
          .inputs = {random_tensor(input, 1)},
          .weights = {random_tensor({outputs, input.c / group, 3, 3}, 2),
                      random_tensor({outputs, 1, 1, 1}, 3)},
          .input_layout = TANDEM_NCHW16C,
          .output_layout = TANDEM_NCHW16C};
}

// The machine has the kernels, and the setup uses them.
bool is_winograd(const LayerSetup& setup) {
  return LayerRun(setup).algorithm().find("wino") != std::string::npos;
}

// All passes of a 3x3 convolution of stride 1, in float64.
struct Sums {
  Sums(const LayerSetup& setup, const PlainTensor& dy, int64_t group, int64_t pad) {
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
            y[to] += static_cast<double>(setup.weights[1].values[static_cast<size_t>(o)]);
            const auto gradient = static_cast<double>(dy.values[to]);
            db[static_cast<size_t>(o)] += gradient;
            for (int64_t c = 0; c < ws.c; ++c) {
              for (int64_t k = 0; k < 9; ++k) {
                const int64_t row = h + k / 3 - pad, column = i + k % 3 - pad;
                if (row < 0 || row >= in.h || column < 0 || column >= in.w) continue;
                const size_t from = at(in, n, o / (out.c / group) * ws.c + c, row, column);
                const size_t weight = at(ws, o, c, k / 3, k % 3);
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

template <class Value>
double difference(const std::vector<float>& a, const std::vector<Value>& b) {
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto expected = static_cast<double>(b[i]);
    most = std::max(most, std::abs(static_cast<double>(a[i]) - expected));
    largest = std::max(largest, std::abs(expected));
  }
  return most / largest;
}

void expect_as_in_float64(const Shape& input, int64_t outputs, int64_t group, int64_t pad) {
  const LayerSetup setup = convolution(input, outputs, group, std::to_string(pad).c_str());
  if (!is_winograd(setup)) GTEST_SKIP() << "this machine's oneDNN has no Winograd kernels";
  LayerRun run(setup);
  const PlainTensor y = run.forward()[0];
  const PlainTensor dy = random_tensor(y.shape, 4);
  const Sums sums(setup, dy, group, pad);
  EXPECT_LE(difference(y.values, sums.y), 2e-6);
  EXPECT_LE(difference(run.backward_data({dy})[0].values, sums.dx), 2e-6);
  const std::vector<PlainTensor> gradients = run.backward_weights({dy});
  EXPECT_LE(difference(gradients[0].values, sums.dw), 5e-6);
  EXPECT_LE(difference(gradients[1].values, sums.db), 2e-6);
}

TEST(Winograd, AgreesWithSumsInFloat64) {
  expect_as_in_float64({4, 32, 16, 16}, 48, 1, 1);
}

// Memory of exactly the size that the kernel asked for, with guards: the weights are at its end.
TEST(Winograd, AgreesWithSumsInFloat64WithoutTraining) {
  for (const int64_t group : {1, 2}) {
    LayerSetup setup = convolution({4, 32, 16, 16}, 32, group, "1");
    setup.phase = TANDEM_TEST;
    setup.flags = 0;
    if (!is_winograd(setup)) GTEST_SKIP() << "this machine's oneDNN has no Winograd kernels";
    LayerRun run(setup);
    const PlainTensor y = run.forward()[0];
    const Sums sums(setup, y, group, 1);
    EXPECT_LE(difference(y.values, sums.y), 2e-6) << group << " groups";
    EXPECT_EQ(run.forward()[0].values, y.values) << group << " groups";
  }
}

TEST(Winograd, ProcessesTheGroupsOneByOne) {
  expect_as_in_float64({4, 64, 17, 15}, 32, 2, 1);
}

TEST(Winograd, SupportsImagesWithoutPadding) {
  expect_as_in_float64({5, 16, 18, 18}, 16, 1, 0);
}

// Enough rows for blocks of two sizes. oneDNN's working memory per row depends on the cpu's caches,
// so that a batch may be divided on one cpu and not on another.
TEST(Winograd, DividesALargeBatchIntoBlocks) {
  LayerSetup setup;
  bool is_divided = false;
  for (const int64_t rows : {21, 85}) {
    setup = convolution({rows, 64, 56, 56}, 192, 1, "1");
    if (!is_winograd(setup)) GTEST_SKIP() << "this machine's oneDNN has no Winograd kernels";
    LayerRun run(setup);
    EXPECT_LE(run.report().scratch_bytes, int64_t{128} << 20);
    is_divided = run.algorithm().find(" rows at a time") != std::string::npos;
    if (is_divided) break;
  }
  if (!is_divided) GTEST_SKIP() << "on this cpu oneDNN needs little working memory for 85 rows";
  LayerRun parts(setup);
  setup.parameters.emplace_back("algorithm", "DIRECT");
  LayerRun direct(setup);
  EXPECT_THAT(direct.algorithm(), testing::Not(testing::HasSubstr("wino")));
  const PlainTensor y = direct.forward()[0], dy = random_tensor(y.shape, 4);
  EXPECT_LE(difference(parts.forward()[0].values, y.values), 5e-6);
  EXPECT_LE(difference(parts.backward_data({dy})[0].values, direct.backward_data({dy})[0].values),
            5e-6);
  const std::vector<PlainTensor> expected = direct.backward_weights({dy});
  const std::vector<PlainTensor> gradients = parts.backward_weights({dy});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LE(difference(gradients[i].values, expected[i].values), 2e-5);
  }
}

TEST(Winograd, AccumulatesWeightGradientsOnRequest) {
  const LayerSetup setup = convolution({4, 32, 16, 16}, 32, 2, "1");
  if (!is_winograd(setup)) GTEST_SKIP() << "this machine's oneDNN has no Winograd kernels";
  LayerRun run(setup);
  const PlainTensor dy = random_tensor(run.forward()[0].shape, 4);
  const std::vector<PlainTensor> alone = run.backward_weights({dy}), start = setup.weights;
  const std::vector<PlainTensor> added = run.backward_weights({dy}, start);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<float> sums = alone[i].values;
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += start[i].values[k];
    EXPECT_LE(difference(added[i].values, sums), 1e-6);
  }
}

TEST(Winograd, IsNotUsedForStridesDilationsOrVeryFewPixels) {
  const auto with = [](const char* name, const char* value) {
    LayerSetup setup = convolution({4, 32, 16, 16}, 32, 1, "1");
    setup.parameters.emplace_back(name, value);
    return setup;
  };
  EXPECT_FALSE(is_winograd(with("stride", "2")));
  EXPECT_FALSE(is_winograd(with("dilation", "2")));
  EXPECT_FALSE(is_winograd(convolution({1, 32, 8, 8}, 32, 1, "1")));
}

TEST(Winograd, HasTheSameBitsEveryTime) {
  const LayerSetup setup = convolution({8, 32, 16, 16}, 32, 1, "1");
  LayerRun first(setup), second(setup);
  const PlainTensor y = first.forward()[0], dy = random_tensor(y.shape, 4);
  EXPECT_EQ(second.forward()[0].values, y.values);
  EXPECT_EQ(first.backward_data({dy})[0].values, second.backward_data({dy})[0].values);
  EXPECT_EQ(first.backward_weights({dy})[0].values, second.backward_weights({dy})[0].values);
}

}  // namespace
}  // namespace tandem::test
