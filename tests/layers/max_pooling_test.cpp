// Max pooling by vectors of channels, in the layouts that have them: compared with its definition.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/layers/thread_bits.h"
#include "tests/support/computable.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

struct Pool {
  Shape input;
  int64_t kernel = 3, stride = 1, pad = 0;
};

LayerSetup pooling(const Pool& p, int32_t layout, int32_t dtype = TANDEM_FLOAT32) {
  return {.type = "Pooling",
          .parameters = {{"kernel_size", std::to_string(p.kernel)},
                         {"stride", std::to_string(p.stride)},
                         {"pad", std::to_string(p.pad)}},
          .inputs = {rounded_to(dtype, random_tensor(p.input, 1))},
          .input_layout = layout,
          .output_layout = layout,
          .input_dtype = dtype,
          .output_dtype = dtype};
}

// Those that this CPU computes in.
std::vector<int32_t> dtypes() {
  if (!no_products(TANDEM_BFLOAT16).empty()) return {TANDEM_FLOAT32};
  return {TANDEM_FLOAT32, TANDEM_BFLOAT16};
}

// The first of the largest elements of a window, or a NaN of it.
size_t place_of_maximum(const Pool& p, const std::vector<float>& x, size_t image, int64_t row,
                        int64_t column) {
  constexpr size_t none = std::numeric_limits<size_t>::max();
  size_t best = none;
  for (int64_t h = row * p.stride - p.pad; h < row * p.stride - p.pad + p.kernel; ++h) {
    for (int64_t w = column * p.stride - p.pad; w < column * p.stride - p.pad + p.kernel; ++w) {
      if (h < 0 || w < 0 || h >= p.input.h || w >= p.input.w) continue;
      const size_t i = image + static_cast<size_t>(h * p.input.w + w);
      if (best == none || x[i] > x[best] || std::isnan(x[i])) best = i;
    }
  }
  return best;
}

void expect_definition(const Pool& p, const LayerSetup& setup) {
  LayerRun run(setup);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("vectors of channels"));
  const PlainTensor y = run.forward()[0];
  const PlainTensor dy = rounded_to(setup.input_dtype, random_tensor(y.shape, 2));
  const std::vector<float>& x = setup.inputs[0].values;
  std::vector<float> dx(x.size(), 0);
  size_t i = 0;
  for (int64_t plane = 0; plane < p.input.n * p.input.c; ++plane) {
    for (int64_t h = 0; h < y.shape.h; ++h) {
      for (int64_t w = 0; w < y.shape.w; ++w, ++i) {
        const size_t place =
            place_of_maximum(p, x, static_cast<size_t>(plane * p.input.h * p.input.w), h, w);
        EXPECT_TRUE(y.values[i] == x[place] || (std::isnan(y.values[i]) && std::isnan(x[place])));
        dx[place] += dy.values[i];
      }
    }
  }
  // Sums of bfloat16 are float32, too, and rounded once.
  const PlainTensor expected = rounded_to(setup.input_dtype, {setup.inputs[0].shape, dx});
  EXPECT_LE(relative_difference(run.backward_data({dy})[0].values, expected.values),
            setup.input_dtype == TANDEM_FLOAT32 ? 1e-6 : 0);
}

constexpr int32_t layouts_of_vectors[] = {TANDEM_NHWC, TANDEM_NCHW8C, TANDEM_NCHW16C};

TEST(MaxPooling, TakesTheFirstLargestElementOfEachWindow) {
  for (const int32_t layout : layouts_of_vectors) {
    for (const Pool& p : {Pool{{3, 32, 14, 14}, 3, 1, 1}, Pool{{3, 32, 15, 14}, 3, 2, 0},
                          Pool{{2, 32, 14, 9}, 3, 2, 1}, Pool{{2, 32, 7, 7}, 7, 1, 0},
                          Pool{{2, 32, 9, 8}, 2, 3, 0}, Pool{{1, 32, 1, 5}, 1, 1, 0}}) {
      SCOPED_TRACE(testing::Message()
                   << "layout " << layout << ", input " << p.input.h << "x" << p.input.w
                   << ", kernel " << p.kernel << ", stride " << p.stride << ", pad " << p.pad);
      for (const int32_t dtype : dtypes()) expect_definition(p, pooling(p, layout, dtype));
    }
  }
}

// The last vector of a pixel overlaps the one before it. The first image has no channel in front.
TEST(MaxPooling, TakesAnyNumberOfChannelsFromFourOn) {
  for (const int64_t channels : {4, 5, 7, 8, 9, 15, 16, 17, 20, 31, 50}) {
    SCOPED_TRACE(channels);
    const Pool p{{2, channels, 8, 8}, 2, 2, 0};
    for (const int32_t dtype : dtypes()) expect_definition(p, pooling(p, TANDEM_NHWC, dtype));
  }
}

TEST(MaxPooling, TakesTheFirstOfEqualElements) {
  const Pool p{{1, 32, 9, 9}, 3, 2, 0};
  LayerSetup setup = pooling(p, TANDEM_NHWC);
  for (float& value : setup.inputs[0].values) value = std::round(2 * value);
  expect_definition(p, setup);
}

TEST(MaxPooling, PassesNanAndInfinityOn) {
  const Pool p{{2, 32, 9, 9}, 3, 2, 0};
  for (const int32_t layout : layouts_of_vectors) {
    SCOPED_TRACE(layout);
    for (const int32_t dtype : dtypes()) {
      LayerSetup setup = pooling(p, layout, dtype);
      std::vector<float>& x = setup.inputs[0].values;
      for (size_t i = 0; i < 81; ++i) x[i] = -std::numeric_limits<float>::infinity();
      for (size_t i = 5; i < x.size(); i += 97) x[i] = std::numeric_limits<float>::quiet_NaN();
      expect_definition(p, setup);
    }
  }
}

TEST(MaxPooling, HasTheSameBitsForEveryNumberOfThreads) {
  for (const int32_t dtype : dtypes()) {
    expect_same_bits_for_every_number_of_threads(
        pooling({{5, 48, 23, 23}, 3, 2, 1}, TANDEM_NHWC, dtype));
  }
}

// CTest runs these tests with such caps too.
TEST(MaxPooling, UsesNoMoreInstructionsThanOneDnnMay) {
  const char* cap = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (cap == nullptr) GTEST_SKIP() << "ONEDNN_MAX_CPU_ISA is not set";
  const std::string algorithm = LayerRun(pooling({{1, 32, 9, 9}}, TANDEM_NHWC)).algorithm();
  if (std::string(cap) == "AVX2" || std::string(cap) == "SSE41") {
    EXPECT_THAT(algorithm, testing::Not(testing::HasSubstr("AVX3")));
  }
  if (std::string(cap) == "SSE41") {
    EXPECT_THAT(algorithm, testing::Not(testing::HasSubstr("AVX2")));
  }
}

}  // namespace
}  // namespace tandem::test
