// Weight gradients of convolutions by tiles of bfloat16 (AMX), compared with sums in float64.
#include <gmock/gmock.h>

#include "tests/layers/convolution_sums.h"
#include "tests/layers/thread_bits.h"
#include "tests/support/computable.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

struct TileCase {
  Shape input;
  int64_t outputs = 32, group = 1, kernel = 3, stride = 1, pad = 1, dilation = 1;
  bool bias = true;
  int64_t kernel_w = 0;  // as `kernel`
};

// Values that bfloat16 can hold.
LayerSetup tiled(const TileCase& c) {
  const int64_t width = c.kernel_w == 0 ? c.kernel : c.kernel_w;
  LayerSetup setup{.type = "Convolution",
                   .parameters = {{"num_output", std::to_string(c.outputs)},
                                  {"group", std::to_string(c.group)},
                                  {"kernel_h", std::to_string(c.kernel)},
                                  {"kernel_w", std::to_string(width)},
                                  {"stride", std::to_string(c.stride)},
                                  {"pad", std::to_string(c.pad)},
                                  {"dilation", std::to_string(c.dilation)},
                                  {"bias_term", c.bias ? "true" : "false"}},
                   .inputs = {random_tensor(c.input, 1)},
                   .weights = {random_tensor({c.outputs, c.input.c / c.group, c.kernel, width}, 2)},
                   .input_layout = TANDEM_NHWC,
                   .output_layout = TANDEM_NHWC};
  setup.input_dtype = setup.output_dtype = TANDEM_BFLOAT16;
  for (PlainTensor& tensor : setup.inputs) tensor = rounded_to(TANDEM_BFLOAT16, tensor);
  for (PlainTensor& tensor : setup.weights) tensor = rounded_to(TANDEM_BFLOAT16, tensor);
  if (c.bias) setup.weights.push_back(random_tensor({c.outputs, 1, 1, 1}, 3));
  return setup;
}

bool is_tiled(const LayerSetup& setup) {
  return LayerRun(setup).algorithm().find("products of tiles") != std::string::npos;
}

class TileGradient : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = no_products(TANDEM_BFLOAT16);
    if (!reason.empty()) GTEST_SKIP() << reason;
    if (!is_tiled(tiled({{2, 32, 8, 8}}))) GTEST_SKIP() << "this CPU has no tiles (AMX)";
  }
};

// The sums are float32.
void expect_tiles_near_float64(const TileCase& c) {
  SCOPED_TRACE(testing::Message() << "input " << c.input.n << "x" << c.input.c << "x" << c.input.h
                                  << "x" << c.input.w << " to " << c.outputs << ", group "
                                  << c.group << ", kernel " << c.kernel << " and " << c.kernel_w
                                  << ", stride " << c.stride << ", pad " << c.pad << ", dilation "
                                  << c.dilation);
  const LayerSetup setup = tiled(c);
  LayerRun run(setup);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("products of tiles"));
  constexpr double summing = 4e-6;
  const PlainTensor y = run.forward()[0];
  const PlainTensor dy = rounded_to(TANDEM_BFLOAT16, random_tensor(y.shape, 4));
  const ConvolutionSums sums(setup, dy, c.group, c.pad, c.stride, c.dilation);
  const std::vector<PlainTensor> gradients = run.backward_weights({dy});
  const std::string algorithm = algorithm_of("backward weights", run.algorithm());
  expect_as_sum(algorithm, "weight_gradient", gradients[0].values, sums.dw, summing);
  if (c.bias) expect_as_sum(algorithm, "bias_gradient", gradients[1].values, sums.db, summing);
}

TEST_F(TileGradient, AgreesWithSumsInFloat64) {
  expect_tiles_near_float64({{3, 64, 14, 14}, 64});
  expect_tiles_near_float64({{2, 32, 15, 14}, 64, 1, 3, 2});
  expect_tiles_near_float64({{2, 64, 9, 9}, 96, 1, 5, 1, 2, 1, false});
  expect_tiles_near_float64({{2, 32, 20, 21}, 32, 1, 7, 3, 3});
  expect_tiles_near_float64({{2, 32, 8, 8}, 64, 1, 1, 1, 0});
}

// Pixels without any tap, windows of padding only, phases that no point of the kernel has.
TEST_F(TileGradient, SupportsAnyWindow) {
  expect_tiles_near_float64({{2, 32, 16, 15}, 32, 1, 1, 2, 0});
  expect_tiles_near_float64({{2, 16, 15, 14}, 16, 1, 2, 2, 0});
  expect_tiles_near_float64({{2, 16, 30, 28}, 16, 1, 2, 5, 3, 7});
  expect_tiles_near_float64({{2, 16, 12, 12}, 16, 1, 3, 1, 5});
  expect_tiles_near_float64({{2, 16, 12, 12}, 16, 1, 2, 1, 1, 5});
  expect_tiles_near_float64({{2, 16, 30, 30}, 16, 1, 3, 4, 1, 2});
  expect_tiles_near_float64({{2, 16, 1, 60}, 16});
  expect_tiles_near_float64({{2, 16, 3, 40}, 16, 1, 5, 1, 2});
  for (const auto& [height, width] : {std::pair{2, 5}, std::pair{7, 2}}) {
    TileCase c{{2, 16, 20, 25}, 16, 1, height, 2, 2, 2};
    c.kernel_w = width;
    expect_tiles_near_float64(c);
  }
}

TEST_F(TileGradient, SupportsChannelsThatTilesDoNotDivide) {
  for (const int64_t inputs : {16, 17, 33, 48}) {
    for (const int64_t outputs : {16, 31, 50, 80}) {
      expect_tiles_near_float64({{2, inputs, 7, 7}, outputs});
      expect_tiles_near_float64({{2, 3 * inputs, 5, 6}, 3 * outputs, 3});
    }
  }
}

// A first layer.
TEST_F(TileGradient, FoldsAnImageOfFewChannels) {
  expect_tiles_near_float64({{2, 3, 32, 32}, 32, 1, 5, 1, 2});
  expect_tiles_near_float64({{2, 3, 45, 43}, 64, 1, 7, 2, 3});
  expect_tiles_near_float64({{2, 3, 67, 67}, 96, 1, 11, 4, 0});
  expect_tiles_near_float64({{2, 1, 28, 28}, 20, 1, 5, 1, 0});
  expect_tiles_near_float64({{2, 15, 11, 12}, 16, 1, 3, 3, 2});
  expect_tiles_near_float64({{2, 4, 70, 90}, 24, 1, 3, 1, 1});
}

// Images of several bands, and several images at once.
TEST_F(TileGradient, DividesLargeImagesAndJoinsSmallOnes) {
  expect_tiles_near_float64({{1, 16, 40, 70}, 192, 1, 3, 1, 1});
  expect_tiles_near_float64({{1, 16, 75, 60}, 192, 1, 3, 2, 1});
  expect_tiles_near_float64({{1, 16, 25, 25}, 16, 1, 3, 1, 12, 12});
  expect_tiles_near_float64({{37, 16, 5, 5}, 16});
  expect_tiles_near_float64({{1, 300, 12, 45}, 20});
  expect_tiles_near_float64({{3, 16, 31, 33}, 16, 1, 1, 1, 0});
  expect_tiles_near_float64({{2, 16, 23, 29}, 16, 1, 1, 1, 0});
}

TEST_F(TileGradient, IsNotUsedWhereTilesWouldBeMostlyEmptyOrCopiesTakeLong) {
  EXPECT_FALSE(is_tiled(tiled({{2, 32, 3, 3}})));
  EXPECT_FALSE(is_tiled(tiled({{2, 32, 8, 8}, 32, 4})));
  EXPECT_FALSE(is_tiled(tiled({{2, 32, 8, 8}, 8})));
  EXPECT_FALSE(is_tiled(tiled({{2, 64, 28, 28}, 64})));
  EXPECT_TRUE(is_tiled(tiled({{2, 64, 27, 27}, 64})));
  EXPECT_FALSE(is_tiled(tiled({{1, 64, 32, 32}, 192, 1, 3, 1, 300, 300})));
  LayerSetup blocks = tiled({{2, 32, 8, 8}});
  blocks.input_layout = blocks.output_layout = TANDEM_NCHW16C;
  EXPECT_FALSE(is_tiled(blocks));
}

TEST_F(TileGradient, AccumulatesWeightGradientsOnRequest) {
  expect_added_weight_gradients(tiled({{3, 20, 9, 9}, 40}));
  expect_added_weight_gradients(tiled({{3, 3, 19, 19}, 20}));
}

TEST_F(TileGradient, HasTheSameBitsForEveryNumberOfThreads) {
  expect_same_bits_for_every_number_of_threads(tiled({{9, 48, 33, 33}, 48, 3, 3, 2, 1}));
  expect_same_bits_for_every_number_of_threads(tiled({{40, 80, 7, 7}, 100}));
}

}  // namespace
}  // namespace tandem::test
