// The algorithms of convolutions in the form that a record keeps, the arithmetic that is allowed,
// and the choice among measured times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/cuda/dnn_algorithms.h"

namespace tandem::cuda {
namespace {

using testing::HasSubstr;

std::string refusal_of(const char* recorded) {
  try {
    static_cast<void>(read_algorithms(recorded));
  } catch (const sdk::Refusal& refusal) {
    return refusal.what();
  }
  return "";
}

TEST(AlgorithmText, NamesTheEngineOfEachPassAndItsKnobs) {
  ConvolutionAlgorithms algorithms{ConvolutionAlgorithm{6}};
  EXPECT_EQ(text_of(algorithms, false), "cuDNN forward engine 6");
  algorithms[0]->adds_bias = true;
  algorithms[2] = ConvolutionAlgorithm{62, true, {{2, 130}, {13, 64}}};
  EXPECT_EQ(text_of(algorithms, true),
            "measured: cuDNN forward engine 6 with bias, backward weights engine 62 on tensor "
            "cores (2=130, "
            "13=64)");
}

TEST(AlgorithmText, IsReadAsItWasWritten) {
  for (int which = 1; which < 8; ++which) {
    ConvolutionAlgorithms algorithms;
    for (int64_t pass = 0; pass < 3; ++pass) {
      if ((which >> pass & 1) == 0) continue;
      ConvolutionAlgorithm algorithm{which + pass * 5, pass == 1};
      algorithm.adds_bias = pass == 0 && which > 3;
      for (int64_t knob = 0; knob < pass; ++knob) algorithm.knobs.push_back({knob, knob * 7 - 3});
      algorithms[static_cast<size_t>(pass)] = algorithm;
    }
    EXPECT_EQ(read_algorithms(text_of(algorithms, true).c_str()), algorithms) << which;
  }
}

TEST(AlgorithmText, ReportsThatTheModelChose) {
  const ConvolutionAlgorithms algorithms{ConvolutionAlgorithm{6, false, {{2, 1}}}};
  const std::string text = text_of(algorithms, true, true);
  EXPECT_EQ(text, "measured: cuDNN forward engine 6 (2=1); by a model");
  EXPECT_EQ(read_algorithms(text.c_str()), algorithms);
  EXPECT_EQ(text_of(algorithms, false, true), "cuDNN forward engine 6 (2=1)");
}

TEST(AlgorithmText, IsRefusedWithAnExampleIfItIsInvalid) {
  for (const char* text :
       {"", "cuDNN forward engine 1", "measured: cuDNN ", "measured: cuDNN forward engine",
        "measured: cuDNN forward engine x", "measured: cuDNN sideways engine 1",
        "measured: cuDNN forward engine 1, ", "measured: cuDNN forward engine 1 and more",
        "measured: cuDNN forward engine 1, forward engine 2", "measured: cuDNN forward engine 1 ()",
        "measured: cuDNN forward engine 1 (2)", "measured: cuDNN forward engine 1 (2=)",
        "measured: cuDNN forward engine 1 (2=1", "measured: cuDNN forward engine 1 (2=1, )",
        "measured: cuDNN forward engine 99999999999999999999",
        "measured: cuDNN forward algorithm 1 on tensor cores"}) {
    EXPECT_THAT(refusal_of(text),
                testing::AllOf(HasSubstr("recorded algorithm '" + std::string(text) + "'"),
                               HasSubstr("'measured: cuDNN forward engine 62 ")))
        << text;
  }
}

TEST(AllowedArithmetic, InFloat32KeepsAllBits) {
  EngineNotes notes;
  EXPECT_TRUE(may_use_arithmetic(notes, true));
  notes.on_tensor_cores = true;
  EXPECT_FALSE(may_use_arithmetic(notes, true));
  EXPECT_TRUE(may_use_arithmetic(notes, false));
}

TEST(AllowedArithmetic, NeverRoundsMoreThanTheUserAskedFor) {
  for (const bool full : {false, true}) {
    EngineNotes converts, sums;
    converts.converts_inputs = true;
    sums.sums_in_16_bits = true;
    EXPECT_FALSE(may_use_arithmetic(converts, full));
    EXPECT_FALSE(may_use_arithmetic(sums, full));
  }
}

TEST(MeasuringOrder, HasEachEngineOnceBeforeTheRest) {
  EXPECT_THAT(measuring_order({{5}, {5}, {5}, {5}, {5}, {6}, {5}, {6}, {7}}),
              testing::ElementsAre(0, 1, 2, 5, 8, 3, 4, 6, 7));
  EXPECT_THAT(measuring_order({}), testing::IsEmpty());
}

TEST(MeasuringOrder, EndsWithEnginesThatTakeLong) {
  EXPECT_THAT(measuring_order({{4, true}, {5}, {6, true}, {5}, {5}, {5}, {7}}),
              testing::ElementsAre(1, 3, 4, 6, 5, 0, 2));
}

TEST(ScratchLimit, IsThatOfTheKindOfGpu) {
  constexpr int64_t mebi = int64_t{1} << 20, gibi = mebi << 10;
  EXPECT_EQ(scratch_limit(0), 256 * mebi);
  EXPECT_EQ(scratch_limit(16 * gibi), 256 * mebi);
  EXPECT_EQ(scratch_limit(24 * gibi), 384 * mebi);
  EXPECT_EQ(scratch_limit(24 * gibi - 1000 * mebi), 384 * mebi) << "some is the driver's";
  EXPECT_EQ(scratch_limit(48 * gibi - 3500 * mebi), 768 * mebi);
  EXPECT_EQ(scratch_limit(80 * gibi), gibi);
  EXPECT_EQ(scratch_limit(141 * gibi), gibi);
}

TEST(MeasuredTimes, TheShortestIsTakenAndTheFirstOfEqualOnes) {
  EXPECT_EQ(fastest({3, 2, 2, 4}), 1U);
  EXPECT_EQ(fastest({0}), 0U);
}

TEST(MeasuredTimes, OfPlansThatDidNotRunDoNotCount) {
  EXPECT_EQ(fastest({-1, 5, -1}), 1U);
  EXPECT_FALSE(fastest({-1, -1}));
  EXPECT_FALSE(fastest({}));
}

}  // namespace
}  // namespace tandem::cuda
