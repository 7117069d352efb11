// The algorithms of convolutions in the form that a record keeps, and the choice among measured
// ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/cuda/dnn_algorithms.h"

namespace tandem::cuda {
namespace {

using testing::HasSubstr;

constexpr int64_t limit = 1000;

MeasuredAlgorithm answer(int number, double milliseconds, int64_t bytes = 0) {
  return {{number, ConvolutionMath::full}, true, true, milliseconds, bytes};
}

std::string refusal_of(const char* recorded) {
  try {
    static_cast<void>(read_algorithms(recorded));
  } catch (const sdk::Refusal& refusal) {
    return refusal.what();
  }
  return "";
}

TEST(AlgorithmText, NamesEachPass) {
  ConvolutionAlgorithms algorithms{ConvolutionAlgorithm{6, ConvolutionMath::by_default}};
  EXPECT_EQ(text_of(algorithms, false), "cuDNN forward algorithm 6 by default arithmetic");
  algorithms[2] = ConvolutionAlgorithm{1, ConvolutionMath::tensor};
  EXPECT_EQ(text_of(algorithms, true),
            "measured: cuDNN forward algorithm 6 by default arithmetic, backward weights algorithm "
            "1 on tensor cores");
}

TEST(AlgorithmText, IsReadAsItWasWritten) {
  for (int which = 1; which < 8; ++which) {
    ConvolutionAlgorithms algorithms;
    for (size_t pass = 0; pass < 3; ++pass) {
      if ((which >> pass & 1) == 0) continue;
      algorithms[pass] = ConvolutionAlgorithm{which + static_cast<int>(pass) * 5,
                                              static_cast<ConvolutionMath>(pass)};
    }
    EXPECT_EQ(read_algorithms(text_of(algorithms, true).c_str()), algorithms) << which;
  }
}

TEST(AlgorithmText, ReportsThatTheModelChose) {
  const ConvolutionAlgorithms algorithms{ConvolutionAlgorithm{6}};
  const std::string text = text_of(algorithms, true, true);
  EXPECT_EQ(text, "measured: cuDNN forward algorithm 6; by a model");
  EXPECT_EQ(read_algorithms(text.c_str()), algorithms);
  EXPECT_EQ(text_of(algorithms, false, true), "cuDNN forward algorithm 6");
}

TEST(AlgorithmText, IsRefusedWithAnExampleIfItIsInvalid) {
  for (const char* text :
       {"", "cuDNN forward algorithm 1", "measured: cuDNN ", "measured: cuDNN forward algorithm",
        "measured: cuDNN forward algorithm x", "measured: cuDNN sideways algorithm 1",
        "measured: cuDNN forward algorithm 1, ", "measured: cuDNN forward algorithm 1 and more",
        "measured: cuDNN forward algorithm 1, forward algorithm 2"}) {
    EXPECT_THAT(refusal_of(text),
                testing::AllOf(HasSubstr("recorded algorithm '" + std::string(text) + "'"),
                               HasSubstr("'measured: cuDNN forward algorithm 1, ")))
        << text;
  }
}

TEST(MeasuredAlgorithms, TheFastestIsTaken) {
  const auto best = fastest({answer(0, 3), answer(1, 2), answer(2, 2), answer(3, 4)}, limit);
  EXPECT_EQ(best, (ConvolutionAlgorithm{1, ConvolutionMath::full}));
}

TEST(MeasuredAlgorithms, CountWithTheShortestOfSeveralTimes) {
  // The first run is slow because libraries are loaded.
  const auto best = fastest({answer(0, 9), answer(1, 3), answer(1, 4), answer(0, 2)}, limit);
  EXPECT_EQ(best->number, 0);
}

// cuDNN also tries its default arithmetic, TF32 on newer GPUs, besides the requested one.
TEST(MeasuredAlgorithms, ThatRoundAreNotUsedIfAllBitsAreWanted) {
  MeasuredAlgorithm rounding = answer(1, 1), on_tensor_cores = answer(2, 1);
  rounding.algorithm.math = ConvolutionMath::by_default;
  on_tensor_cores.algorithm.math = ConvolutionMath::tensor;
  const std::vector<MeasuredAlgorithm> all{rounding, on_tensor_cores, answer(1, 5), answer(3, 4)};
  EXPECT_EQ(fastest(all, limit, true), (ConvolutionAlgorithm{3, ConvolutionMath::full}));
  EXPECT_EQ(fastest(all, limit)->number, 1);
  EXPECT_FALSE(fastest({rounding, on_tensor_cores}, limit, true));
}

TEST(MeasuredAlgorithms, ThatMayGiveOtherBitsFailOrNeedTooMuchAreNotUsed) {
  MeasuredAlgorithm random = answer(0, 1), failed = answer(1, 1), never = answer(4, -1);
  random.is_deterministic = false;
  failed.works = false;
  const std::vector<MeasuredAlgorithm> all{random, failed, answer(2, 1, limit + 1),
                                           answer(3, 5, limit), never};
  EXPECT_EQ(fastest(all, limit)->number, 3);
  EXPECT_FALSE(fastest({random, failed, never}, limit));
}

}  // namespace
}  // namespace tandem::cuda
