// Tandem's own kernels for every shape, which compute where oneDNN has only reference code. On
// x86-64 TANDEM_CPU_KERNELS=own asks for them; CTest runs these and other tests so.
#include <gmock/gmock.h>

#include "tests/layers/convolution_sums.h"
#include "tests/layers/thread_bits.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

class OwnKernels : public testing::Test {
 protected:
  void SetUp() override {
    const LayerSetup setup{.type = "Softmax", .inputs = {random_tensor({2, 8, 1, 1}, 1)}};
    if (LayerRun(setup).algorithm().find(':') != std::string::npos) {
      GTEST_SKIP() << "oneDNN's kernels are used: TANDEM_CPU_KERNELS=own is not set";
    }
    if (!kernels_run_on_a_cpu()) GTEST_SKIP() << "for kernels of a cpu";
  }
};

struct OwnConvolutionCase {
  Shape input;
  int64_t outputs = 8, group = 1, kernel = 3, stride = 1, pad = 1, dilation = 1;
  int64_t kernel_w = 0;  // as `kernel`
};

LayerSetup own_convolution(const OwnConvolutionCase& c, const std::string& type = "Convolution") {
  const int64_t width = c.kernel_w == 0 ? c.kernel : c.kernel_w;
  const Shape weights = type == "Convolution"
                            ? Shape{c.outputs, c.input.c / c.group, c.kernel, width}
                            : Shape{c.input.c, c.outputs / c.group, c.kernel, width};
  LayerSetup setup{.type = type,
                   .parameters = {{"num_output", std::to_string(c.outputs)},
                                  {"group", std::to_string(c.group)},
                                  {"kernel_h", std::to_string(c.kernel)},
                                  {"kernel_w", std::to_string(width)},
                                  {"stride", std::to_string(c.stride)},
                                  {"pad", std::to_string(c.pad)},
                                  {"dilation", std::to_string(c.dilation)}},
                   .inputs = {random_tensor(c.input, 1)},
                   .weights = {random_tensor(weights, 2), random_tensor({c.outputs, 1, 1, 1}, 3)}};
  if (type == "Convolution") setup.parameters.emplace_back("algorithm", "DIRECT");
  return setup;
}

// Few and many channels, vectors that channels do not fill, 1x1 kernels, phases without a point of
// the kernel, windows of padding only, more channels than a product takes at once, bands of rows.
const std::vector<OwnConvolutionCase>& convolution_cases() {
  static const std::vector<OwnConvolutionCase> cases{{{2, 3, 35, 33}, 24, 1, 7, 2, 3},
                                                     {{1, 3, 47, 50}, 16, 1, 11, 4, 0},
                                                     {{2, 5, 9, 7}, 7},
                                                     {{3, 16, 7, 7}, 32, 1, 1, 1, 0},
                                                     {{2, 24, 9, 10}, 40, 1, 1, 2, 0},
                                                     {{2, 16, 12, 11}, 16, 1, 2, 3, 0},
                                                     {{2, 16, 30, 31}, 8, 2, 5, 1, 2},
                                                     {{2, 24, 10, 10}, 24, 3, 3, 2, 1},
                                                     {{2, 8, 13, 12}, 16, 1, 3, 1, 2, 2},
                                                     {{2, 8, 12, 12}, 16, 1, 3, 2, 4, 3},
                                                     {{1, 400, 6, 6}, 16},
                                                     {{1, 16, 6, 6}, 400, 1, 3, 2},
                                                     {{2, 16, 1, 40}, 16, 1, 1, 1, 0, 1, 9},
                                                     {{2, 16, 40, 3}, 16, 1, 9, 1, 1, 1, 2},
                                                     {{2, 16, 4, 4}, 8, 1, 4, 1, 0},
                                                     {{2, 9, 4, 5}, 9, 9, 3, 1, 4},
                                                     {{1, 16, 70, 90}, 9, 1, 3, 1, 1}};
  return cases;
}

TEST_F(OwnKernels, ConvolveAnyShapeInEveryLayout) {
  for (const OwnConvolutionCase& c : convolution_cases()) {
    SCOPED_TRACE(testing::Message() << to_string(c.input) << " to " << c.outputs << ", group "
                                    << c.group << ", kernel " << c.kernel << ", stride " << c.stride
                                    << ", pad " << c.pad << ", dilation " << c.dilation);
    for (const LayerSetup& setup : in_every_layout(own_convolution(c))) {
      SCOPED_TRACE(layout_text(setup));
      LayerRun run(setup);
      EXPECT_THAT(run.algorithm(), testing::Not(testing::HasSubstr(":")));
      expect_as_sums(setup, run, c.group, c.pad, c.stride, c.dilation);
    }
  }
}

TEST_F(OwnKernels, AddWeightGradientsOnRequest) {
  expect_added_weight_gradients(own_convolution({{3, 20, 9, 9}, 24}));
  expect_added_weight_gradients(own_convolution({{3, 20, 9, 9}, 24}, "Deconvolution"));
}

// One of each kernel, of images with several bands and parts.
std::vector<LayerSetup> own_layers(int64_t rows) {
  const auto inputs = [&](int64_t c, int64_t h, int64_t w) {
    return random_tensor({rows, c, h, w}, 1);
  };
  LayerSetup product{
      .type = "InnerProduct",
      .parameters = {{"num_output", "301"}},
      .inputs = {inputs(700, 1, 1)},
      .weights = {random_tensor({301, 700, 1, 1}, 2), random_tensor({301, 1, 1, 1}, 3)}};
  const auto pooling = [&](const char* pool, int64_t channels) {
    return LayerSetup{
        .type = "Pooling",
        .parameters = {{"pool", pool}, {"kernel_size", "3"}, {"stride", "2"}, {"pad", "1"}},
        .inputs = {inputs(channels, 31, 30)}};
  };
  return {own_convolution({{rows, 24, 19, 21}, 40}),
          own_convolution({{rows, 24, 19, 21}, 40, 2, 5, 2, 2}),
          own_convolution({{rows, 40, 9, 8}, 24, 2, 4, 2, 1}, "Deconvolution"),
          product,
          pooling("AVE", 24),
          pooling("MAX", 3),
          {.type = "Softmax", .inputs = {inputs(100, 9, 8)}}};
}

TEST_F(OwnKernels, HaveTheSameBitsForEveryNumberOfThreads) {
  for (const LayerSetup& setup : own_layers(5)) {
    SCOPED_TRACE(setup.type);
    expect_same_bits_for_every_number_of_threads(setup);
  }
}

TEST_F(OwnKernels, GiveARowTheSameBitsInEveryBatch) {
  std::vector<LayerSetup> large = own_layers(37), small = own_layers(37);
  for (size_t i = 0; i < small.size(); ++i) {
    SCOPED_TRACE(small[i].type);
    PlainTensor& x = small[i].inputs[0];
    x.values.resize(x.values.size() / 37 * 2);
    x.shape.n = 2;
    LayerRun of_large(large[i]), of_small(small[i]);
    const PlainTensor y = of_small.forward()[0], all = of_large.forward()[0];
    const PlainTensor dy = random_tensor(all.shape, 4);
    PlainTensor few{y.shape, {dy.values.begin(), dy.values.begin() + int64_t(y.values.size())}};
    std::vector<float> first = all.values;
    first.resize(y.values.size());
    EXPECT_EQ(y.values, first);
    first = of_large.backward_data({dy})[0].values;
    first.resize(x.values.size());
    EXPECT_EQ(of_small.backward_data({few})[0].values, first);
  }
}

std::vector<double> own_product_sums(const PlainTensor& a, const PlainTensor& b, int64_t m,
                                     int64_t n, int64_t k) {
  std::vector<double> c;
  for (int64_t matrix = 0; matrix < a.shape.n * a.shape.c; ++matrix) {
    for (int64_t i = 0; i < m * n; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += double(a.values[size_t((matrix * m + i / n) * k + l)]) *
               double(b.values[size_t((matrix * k + l) * n + i % n)]);
      }
      c.push_back(sum);
    }
  }
  return c;
}

// Few and many rows, columns that do not fill vectors, more steps than a product takes at once.
TEST_F(OwnKernels, MultiplyMatrices) {
  struct Extents {
    int64_t m, n, k;
  };
  for (const Extents& e : {Extents{1, 1, 1}, Extents{3, 5, 7}, Extents{16, 48, 300},
                           Extents{131, 197, 20}, Extents{260, 9, 513}, Extents{2, 400, 33}}) {
    SCOPED_TRACE(testing::Message() << e.m << " x " << e.k << " by " << e.k << " x " << e.n);
    const LayerSetup setup{
        .type = "MatMul",
        .inputs = {random_tensor({2, 3, e.m, e.k}, 1), random_tensor({2, 3, e.k, e.n}, 2)}};
    LayerRun run(setup);
    EXPECT_THAT(run.algorithm(), testing::Not(testing::HasSubstr(":")));
    EXPECT_LE(
        relative_difference(run.forward()[0].values,
                            own_product_sums(setup.inputs[0], setup.inputs[1], e.m, e.n, e.k)),
        2e-6);
  }
}

// A window of more pixels than a byte counts, and channels that no vector divides.
TEST_F(OwnKernels, PoolLargeWindowsOfAnyNumberOfChannels) {
  for (const int64_t channels : {1, 3, 13, 29}) {
    const LayerSetup setup{
        .type = "Pooling",
        .parameters = {{"pool", "MAX"}, {"kernel_size", "17"}, {"stride", "5"}, {"pad", "3"}},
        .inputs = {random_tensor({2, channels, 33, 40}, 1)}};
    LayerRun plain(setup);
    const PlainTensor y = plain.forward()[0], dy = random_tensor(y.shape, 4);
    const PlainTensor dx = plain.backward_data({dy})[0];
    double sum = 0, expected = 0;
    for (const float value : dx.values) sum += double(value);
    for (const float value : dy.values) expected += double(value);
    EXPECT_NEAR(sum, expected, 1e-3);
    for (const LayerSetup& other : in_every_layout(setup)) {
      LayerRun run(other);
      EXPECT_EQ(run.forward()[0].values, y.values) << layout_text(other);
      EXPECT_LE(relative_difference(run.backward_data({dy})[0].values, dx.values), 1e-6);
    }
  }
}

}  // namespace
}  // namespace tandem::test
