// How convolutions and products choose by the answers of cuDNN and cuBLASLt, and that nothing leaks
// if that fails.
#include <gtest/gtest.h>

#include <algorithm>

#include "plugins/cuda/blas_bias.h"
#include "plugins/cuda/dnn.h"
#include "tests/cuda_libraries/stand_in.h"

namespace tandem::cuda {
namespace {

using stand_in::libraries;

int handle = 0;
const sdk::Call call{sizeof(tandem_call), 0, 1, nullptr, &handle, &handle};

cudnnConvolutionFwdAlgoPerf_t answer(int algorithm, float milliseconds, cudnnMathType_t math) {
  cudnnConvolutionFwdAlgoPerf_t result{};
  result.algo = static_cast<cudnnConvolutionFwdAlgo_t>(algorithm);
  result.status = CUDNN_STATUS_SUCCESS;
  result.time = milliseconds;
  result.determinism = CUDNN_DETERMINISTIC;
  result.mathType = math;
  return result;
}

class LibrariesThatAnswer : public testing::Test {
 protected:
  LibrariesThatAnswer() {
    libraries() = {};
    libraries().by_model = {answer(0, 1, CUDNN_FMA_MATH)};
    libraries().measured = {answer(6, 2, CUDNN_FMA_MATH), answer(1, 3, CUDNN_FMA_MATH)};
  }
  ~LibrariesThatAnswer() override { EXPECT_EQ(libraries().objects, 0) << "something leaks"; }

  static std::string chosen(const ConvolutionChoice& how, const ConvolutionKind& kind = {}) {
    const ConvolutionShape shape{{2, 3, 8, 8}, {4, 3, 3, 3}, {2, 4, 8, 8}, 1,
                                 {1, 1},       {1, 1},       {1, 1}};
    return Convolution(call, shape, kind, false, false, how).algorithm();
  }
  static std::string measured() { return chosen({nullptr, true}); }
};

TEST_F(LibrariesThatAnswer, MeasureOnlyIfItIsAllowed) {
  EXPECT_EQ(chosen({}), "cuDNN forward algorithm 0");
  EXPECT_EQ(libraries().finds, 0);
  EXPECT_EQ(measured(), "measured: cuDNN forward algorithm 6");
  EXPECT_GT(libraries().finds, 0);
}

TEST_F(LibrariesThatAnswer, ChooseByTheirModelWithoutMemoryForMeasuring) {
  libraries().memory_bytes = 0;
  const std::string text = measured();
  EXPECT_EQ(text, "measured: cuDNN forward algorithm 0; by a model");
  EXPECT_EQ(libraries().finds, 0);
  EXPECT_EQ(chosen({text.c_str(), false}), text) << "a resumed run takes it again";
}

TEST_F(LibrariesThatAnswer, WithLittleMemoryMeasureWithLessScratch) {
  libraries().memory_bytes = size_t{20} << 20;
  EXPECT_EQ(measured(), "measured: cuDNN forward algorithm 6");
}

TEST_F(LibrariesThatAnswer, ChooseByTheirModelIfMeasuringRunsOutOfMemory) {
  libraries().find_status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  EXPECT_EQ(measured(), "measured: cuDNN forward algorithm 0; by a model");
}

TEST_F(LibrariesThatAnswer, DoNotUseRoundingArithmeticInFloat32) {
  libraries().measured.push_back(answer(7, 1, CUDNN_DEFAULT_MATH));
  EXPECT_EQ(measured(), "measured: cuDNN forward algorithm 6");
  libraries().measured = {answer(7, 1, CUDNN_DEFAULT_MATH)};
  EXPECT_EQ(measured(), "measured: cuDNN forward algorithm 0; by a model");
}

TEST_F(LibrariesThatAnswer, GetTensorsAndWeightsWithChannelsLastInTf32) {
  using Described = stand_in::Libraries::Described;
  ConvolutionKind tf32;
  tf32.allows_tf32 = tf32.channels_last = true;
  libraries().by_model = {answer(1, 1, CUDNN_DEFAULT_MATH)};
  EXPECT_EQ(chosen({}, tf32), "cuDNN forward algorithm 1 by default arithmetic");
  const Described floats{CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT};
  EXPECT_EQ(libraries().tensors, (std::vector<Described>{floats, floats}));
  EXPECT_EQ(libraries().filters, (std::vector<Described>{floats}));
  EXPECT_EQ(std::count(libraries().maths.begin(), libraries().maths.end(), CUDNN_FMA_MATH), 0);
}

TEST_F(LibrariesThatAnswer, RecordTheMeasuredAlgorithmInTf32AndUseItAgain) {
  ConvolutionKind tf32;
  tf32.allows_tf32 = tf32.channels_last = true;
  libraries().measured = {answer(6, 2, CUDNN_FMA_MATH), answer(1, 1, CUDNN_DEFAULT_MATH)};
  const std::string text = chosen({nullptr, true}, tf32);
  EXPECT_EQ(text, "measured: cuDNN forward algorithm 1 by default arithmetic");
  libraries().finds = 0;
  EXPECT_EQ(chosen({text.c_str(), true}, tf32), text);
  EXPECT_EQ(libraries().finds, 0);
}

TEST_F(LibrariesThatAnswer, LeakNothingIfMeasuringCannotBegin) {
  libraries().memset_fails = true;
  EXPECT_THROW(measured(), sdk::Refusal);
}

TEST_F(LibrariesThatAnswer, LeakNothingIfThereIsNoProduct) {
  EXPECT_FALSE(BiasedProduct(call, 5, 7, 3, false).is_possible());
  libraries().blas_fails = true;
  EXPECT_THROW(BiasedProduct(call, 5, 7, 3, false), sdk::Refusal);
}

}  // namespace
}  // namespace tandem::cuda
