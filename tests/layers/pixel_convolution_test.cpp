// Convolutions by vectors of pixels, compared with sums in float64.
#include <gmock/gmock.h>

#include "tests/layers/convolution_sums.h"
#include "tests/layers/thread_bits.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

struct PixelCase {
  Shape input;
  int64_t outputs = 8, group = 4, kernel = 3, stride = 1, pad = 1, dilation = 1;
  bool bias = true;
  int64_t kernel_w = 0;  // as `kernel`
};

int64_t width_of_kernel(const PixelCase& c) {
  return c.kernel_w == 0 ? c.kernel : c.kernel_w;
}

LayerSetup grouped(const PixelCase& c, int32_t input_layout = TANDEM_NCHW,
                   int32_t output_layout = TANDEM_NCHW) {
  LayerSetup setup{
      .type = "Convolution",
      .parameters = {{"num_output", std::to_string(c.outputs)},
                     {"group", std::to_string(c.group)},
                     {"kernel_h", std::to_string(c.kernel)},
                     {"kernel_w", std::to_string(width_of_kernel(c))},
                     {"stride", std::to_string(c.stride)},
                     {"pad", std::to_string(c.pad)},
                     {"dilation", std::to_string(c.dilation)},
                     {"bias_term", c.bias ? "true" : "false"}},
      .inputs = {random_tensor(c.input, 1)},
      .weights = {random_tensor({c.outputs, c.input.c / c.group, c.kernel, width_of_kernel(c)}, 2)},
      .input_layout = input_layout,
      .output_layout = output_layout};
  if (c.bias) setup.weights.push_back(random_tensor({c.outputs, 1, 1, 1}, 3));
  return setup;
}

class PixelConvolution : public testing::Test {
 protected:
  void SetUp() override {
    LayerRun run(grouped({{2, 16, 8, 8}}));
    if (run.algorithm().find("vectors of pixels") == std::string::npos) {
      GTEST_SKIP() << "with this instruction set, oneDNN's kernels are used";
    }
  }
};

void expect_pixels_near_float64(const PixelCase& c, int32_t input_layout = TANDEM_NCHW,
                                int32_t output_layout = TANDEM_NCHW) {
  SCOPED_TRACE(testing::Message() << "input " << c.input.n << "x" << c.input.c << "x" << c.input.h
                                  << "x" << c.input.w << " to " << c.outputs << ", group "
                                  << c.group << ", kernel " << c.kernel << ", stride " << c.stride
                                  << ", pad " << c.pad << ", dilation " << c.dilation
                                  << ", layouts " << input_layout << " and " << output_layout);
  const LayerSetup setup = grouped(c, input_layout, output_layout);
  LayerRun run(setup);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("vectors of pixels"));
  expect_as_sums(setup, run, c.group, c.pad, c.stride, c.dilation);
}

TEST_F(PixelConvolution, AgreesWithSumsInFloat64InEveryLayout) {
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC, TANDEM_NCHW8C}) {
    for (const PixelCase& c :
         {PixelCase{{3, 32, 14, 14}, 32, 8}, PixelCase{{2, 32, 15, 14}, 16, 8, 3, 2},
          PixelCase{{2, 32, 22, 15}, 16, 8, 3, 2, 0},
          PixelCase{{2, 32, 11, 13}, 8, 8, 5, 1, 2, 1, false},
          PixelCase{{2, 16, 40, 21}, 32, 16, 7, 3, 3},
          PixelCase{{2, 16, 23, 19}, 16, 4, 4, 1, 3, 4},
          PixelCase{{2, 24, 21, 21}, 8, 2, 3, 2, 4, 4}, PixelCase{{2, 16, 9, 9}, 16, 4, 2, 1, 0}}) {
      expect_pixels_near_float64(c, layout, layout);
    }
  }
}

// Pixels without any tap, windows of padding only, phases that no point of the kernel has.
TEST_F(PixelConvolution, SupportsAnyWindow) {
  expect_pixels_near_float64({{2, 16, 15, 14}, 16, 4, 2, 2, 0});
  expect_pixels_near_float64({{2, 16, 40, 38}, 16, 4, 2, 5, 3, 7});
  expect_pixels_near_float64({{2, 16, 12, 12}, 16, 4, 3, 1, 5});
  expect_pixels_near_float64({{2, 16, 12, 12}, 16, 4, 2, 1, 1, 5});
  expect_pixels_near_float64({{2, 16, 30, 30}, 16, 4, 3, 4, 1, 2});
  expect_pixels_near_float64({{2, 16, 1, 60}, 16, 4});
  expect_pixels_near_float64({{2, 16, 3, 40}, 16, 4, 5, 1, 2});
  expect_pixels_near_float64({{2, 16, 20, 20}, 16, 4, 11, 1, 10, 2});
  for (const auto& [height, width] : {std::pair{2, 5}, std::pair{7, 2}}) {
    PixelCase c{{2, 16, 20, 25}, 16, 4, height, 2, 2, 2};
    c.kernel_w = width;
    expect_pixels_near_float64(c);
  }
}

// Large strides, little but padding, few pixels, many channels, or wide rows.
TEST_F(PixelConvolution, IsNotUsedWhereItsCopiesTakeLong) {
  for (const PixelCase& c :
       {PixelCase{{1, 6, 4, 4}, 6, 2, 2, 1000, 0}, PixelCase{{1, 6, 90, 90}, 6, 2, 2, 3, 0},
        PixelCase{{1, 6, 8, 8}, 6, 2, 3, 1, 50, 50}, PixelCase{{1, 6, 4, 4}, 6, 2},
        PixelCase{{1, 68, 8, 8}, 68, 2}, PixelCase{{1, 64, 3, 9000}, 4, 1},
        PixelCase{{1, 6, 8, 8}, 6, 2, 1}}) {
    LayerRun run(grouped(c));
    EXPECT_THAT(run.algorithm(), testing::Not(testing::HasSubstr("vectors of pixels")));
  }
}

// Blocks of fewer channels, and of one only.
TEST_F(PixelConvolution, SupportsAnyNumberOfChannels) {
  for (const int64_t inputs : {1, 2, 3, 5, 8, 13}) {
    for (const int64_t outputs : {1, 2, 3, 4, 5, 7, 11}) {
      expect_pixels_near_float64({{2, 3 * inputs, 7, 7}, 3 * outputs, 3});
    }
  }
}

// Images from many channels: one group. The input may be in blocks of channels.
TEST_F(PixelConvolution, SupportsFewOutputsOfAllChannels) {
  for (const int64_t outputs : {1, 3, 7}) {
    for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC}) {
      expect_pixels_near_float64({{2, 24, 13, 11}, outputs, 1}, layout, layout);
      expect_pixels_near_float64({{2, 19, 17, 19}, outputs, 1, 5, 2, 2}, layout, layout);
    }
    expect_pixels_near_float64({{2, 24, 13, 11}, outputs, 1}, TANDEM_NCHW8C, TANDEM_NCHW);
  }
}

// Bands of rows, and parts of the source channels.
TEST_F(PixelConvolution, DividesLargeImages) {
  expect_pixels_near_float64({{1, 4, 70, 90}, 6, 2, 5, 1, 2});
  expect_pixels_near_float64({{1, 4, 75, 90}, 6, 2, 3, 2, 1});
  expect_pixels_near_float64({{2, 202, 23, 25}, 7, 1});
  expect_pixels_near_float64({{1, 6, 40, 40}, 10, 2, 3, 1, 12, 12});
}

TEST_F(PixelConvolution, AccumulatesWeightGradientsOnRequest) {
  expect_added_weight_gradients(grouped({{3, 20, 9, 9}, 8}));
}

TEST_F(PixelConvolution, HasTheSameBitsForEveryNumberOfThreads) {
  expect_same_bits_for_every_number_of_threads(grouped({{9, 48, 33, 33}, 48, 12, 3, 2, 1}));
  expect_same_bits_for_every_number_of_threads(grouped({{1, 24, 60, 60}, 3, 1}));
}

// An image's planes hold what another image left there before.
TEST_F(PixelConvolution, LeavesOutWhatIsNotAPixel) {
  const PixelCase c{{3, 16, 7, 7}, 16, 4};
  LayerSetup setup = grouped(c);
  for (size_t i = 0; i < setup.inputs[0].values.size() / 3; ++i) {
    setup.inputs[0].values[i] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<float> y = LayerRun(setup).forward()[0].values;
  const std::vector<float> expected = LayerRun(grouped(c)).forward()[0].values;
  const auto second = static_cast<int64_t>(y.size() / 3);
  EXPECT_EQ(std::vector<float>(y.begin() + second, y.end()),
            std::vector<float>(expected.begin() + second, expected.end()));
}

}  // namespace
}  // namespace tandem::test
