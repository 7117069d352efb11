// The index arithmetic of kernels on GPUs.
#include "plugins/cuda/indexing.h"

#include <gtest/gtest.h>

#include <random>

namespace tandem::test {
namespace {

using cuda::Divisor;

TEST(Divisor, DividesExactlyByMultiplication) {
  std::mt19937_64 random(1);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % uint64_t(end)); };
  const int64_t end = int64_t{1} << 31;
  for (int i = 0; i < 20000; ++i) {
    const int64_t divisor = i < 3000 ? i + 1 : 1 + below(end - 1) / (int64_t{1} << below(30));
    const Divisor by(divisor == 0 ? 1 : divisor);
    const int64_t middle = below(end) / by * by;
    for (const int64_t number : {int64_t{0}, int64_t{by}, int64_t{by} - 1, middle, middle + 1,
                                 middle > 0 ? middle - 1 : 0, end - 1, below(end)}) {
      EXPECT_EQ(by.divide(number), number / int64_t{by}) << number << " / " << int64_t{by};
    }
  }
}

TEST(Divisor, DividesLargeNumbers) {
  for (const int64_t divisor :
       {int64_t{1}, int64_t{7}, (int64_t{1} << 31) - 1, int64_t{1} << 31, (int64_t{1} << 33) + 5}) {
    for (const int64_t number :
         {int64_t{1} << 31, (int64_t{1} << 32) + 9, (int64_t{1} << 40) - 1}) {
      EXPECT_EQ(Divisor(divisor).divide(number), number / divisor) << number << " / " << divisor;
    }
  }
}

TEST(TensorIndex, ConvertsEveryIndexToCoordinatesAndBack) {
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC}) {
    const cuda::TensorIndex tensor(tandem_tensor{{2, 3, 5, 7}, TANDEM_FLOAT32, layout});
    for (int64_t i = 0; i < 2 * 3 * 5 * 7; ++i) EXPECT_EQ(tensor.index(tensor.position(i)), i);
  }
  const cuda::TensorIndex last(tandem_tensor{{2, 3, 5, 7}, TANDEM_FLOAT32, TANDEM_NHWC});
  EXPECT_EQ(last.index({1, 2, 4, 6}), 209);
  EXPECT_EQ(last.index({0, 2, 0, 1}), 5);
}

}  // namespace
}  // namespace tandem::test
