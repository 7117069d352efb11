// How convolutions and products choose by the answers of cuDNN and cuBLASLt, and that nothing leaks
// if that fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plugins/cuda/blas_bias.h"
#include "plugins/cuda/dnn.h"
#include "tests/cuda_libraries/stand_in.h"

namespace tandem::cuda {
namespace {

using stand_in::Engine;
using stand_in::libraries;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

int handle = 0;
const sdk::Call call{sizeof(tandem_call), 0, 1, nullptr, &handle, &handle};

constexpr int64_t limit = int64_t{256} << 20;
constexpr auto random_sums = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
               tensor_cores = CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
               converts = CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
               short_sums = CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;

ConvolutionKind kind_of(int32_t dtype, bool allows_tf32 = false) {
  return {dtype, dtype != TANDEM_FLOAT32 || allows_tf32, allows_tf32, false};
}
const ConvolutionKind float32 = kind_of(TANDEM_FLOAT32), tf32 = kind_of(TANDEM_FLOAT32, true),
                      bfloat16 = kind_of(TANDEM_BFLOAT16);
const ConvolutionShape shape{{2, 6, 9, 8}, {4, 3, 3, 2}, {2, 4, 5, 5}, 2, {2, 2}, {1, 1}, {1, 1}};

class LibrariesThatAnswer : public testing::Test {
 protected:
  LibrariesThatAnswer() {
    libraries() = {};
    libraries().by_model = {{.number = 1, .milliseconds = 3}, {.number = 6, .milliseconds = 2}};
  }
  ~LibrariesThatAnswer() override { EXPECT_EQ(libraries().objects, 0) << "something leaks"; }

  static Convolution convolution(const ConvolutionChoice& how, const ConvolutionKind& kind = {},
                                 bool trains = false) {
    return {call, shape, kind, trains, trains, how};
  }
  static std::string chosen(const ConvolutionChoice& how, const ConvolutionKind& kind = {}) {
    return convolution(how, kind).algorithm();
  }
  static std::string measured(const ConvolutionKind& kind = {}) {
    return chosen({nullptr, true}, kind);
  }
  static std::string refusal(const ConvolutionChoice& how, const ConvolutionKind& kind = {}) {
    try {
      return "not refused: " + chosen(how, kind);
    } catch (const sdk::Refusal& refusal) {
      return refusal.what();
    }
  }
};

TEST_F(LibrariesThatAnswer, MeasureOnlyIfItIsAllowed) {
  EXPECT_EQ(chosen({}), "cuDNN forward engine 1");
  EXPECT_THAT(libraries().runs, IsEmpty());
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 6");
  EXPECT_EQ(libraries().runs.size(), 10U) << "each twice to warm up and three times to measure";
}

TEST_F(LibrariesThatAnswer, RunAnEngineOnceThatIsMuchSlower) {
  libraries().by_model = {{.number = 1, .milliseconds = 1000},
                          {.number = 6, .milliseconds = 2},
                          {.number = 7, .milliseconds = 600}};
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 6");
  const auto runs_of = [](int64_t number) {
    return std::count_if(libraries().runs.begin(), libraries().runs.end(),
                         [&](const stand_in::Libraries::Run& run) { return run.engine == number; });
  };
  EXPECT_EQ(runs_of(1), 5) << "nothing was known to be faster";
  EXPECT_EQ(runs_of(6), 5);
  EXPECT_EQ(runs_of(7), 1);
}

TEST_F(LibrariesThatAnswer, AreAskedForTheFallbacksOnlyIfTheModelHasNothing) {
  libraries().fallbacks = {{.number = 9}};
  EXPECT_EQ(chosen({}), "cuDNN forward engine 1");
  libraries().by_model = {};
  EXPECT_EQ(chosen({}), "cuDNN forward engine 9");
}

TEST_F(LibrariesThatAnswer, GiveTheFirstEngineThatAlwaysGivesTheSameBits) {
  libraries().by_model = {{.number = 1, .notes = {random_sums}}, {.number = 2}};
  EXPECT_EQ(chosen({}), "cuDNN forward engine 2");
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 2");
}

TEST_F(LibrariesThatAnswer, GiveAnEngineThatCanBePreparedWithinTheScratchMemory) {
  libraries().by_model = {{.number = 1, .can_be_prepared = false},
                          {.number = 2, .scratch_bytes = limit + 1},
                          {.number = 3, .scratch_bytes = limit}};
  EXPECT_EQ(chosen({}), "cuDNN forward engine 3");
  EXPECT_GE(convolution({}).scratch_bytes(), limit);
}

TEST_F(LibrariesThatAnswer, UseTensorCoresWhereTheUserAllowsTheirRounding) {
  libraries().by_model = {{.number = 1, .notes = {tensor_cores}}, {.number = 2}};
  EXPECT_EQ(chosen({}, float32), "cuDNN forward engine 2");
  EXPECT_EQ(chosen({}, tf32), "cuDNN forward engine 1 on tensor cores");
  EXPECT_EQ(chosen({}, bfloat16), "cuDNN forward engine 1 on tensor cores");
  EXPECT_EQ(measured(float32), "measured: cuDNN forward engine 2");
  EXPECT_EQ(measured(tf32), "measured: cuDNN forward engine 1 on tensor cores");
}

TEST_F(LibrariesThatAnswer, NeverRoundMoreThanTheUserAllows) {
  libraries().by_model = {{.number = 1, .notes = {tensor_cores, converts}},
                          {.number = 2, .notes = {short_sums}},
                          {.number = 3}};
  for (const ConvolutionKind& kind : {float32, tf32, bfloat16}) {
    EXPECT_EQ(chosen({}, kind), "cuDNN forward engine 3");
    EXPECT_EQ(measured(kind), "measured: cuDNN forward engine 3");
  }
}

TEST_F(LibrariesThatAnswer, RefuseWithAWayOutIfNoEngineIsUsable) {
  libraries().by_model = {{.number = 1, .notes = {random_sums}}};
  const std::string reason =
      "cuDNN 9 has no deterministic forward engine for these shapes in 256 MiB of scratch memory";
  EXPECT_EQ(refusal({}, float32), reason);
  EXPECT_EQ(refusal({}, tf32), reason + ": use --precision float32");
  EXPECT_EQ(refusal({}, bfloat16), reason + ": use --precision tf32 or float32");
  libraries().model_knows_graphs = false;
  EXPECT_EQ(refusal({nullptr, true}), reason);
}

TEST_F(LibrariesThatAnswer, ChooseByTheirModelWithoutMemoryForMeasuring) {
  libraries().memory_bytes = 0;
  const std::string text = measured();
  EXPECT_EQ(text, "measured: cuDNN forward engine 1; by a model");
  EXPECT_THAT(libraries().runs, IsEmpty());
  EXPECT_EQ(chosen({text.c_str(), false}), text) << "a resumed run takes it again";
}

TEST_F(LibrariesThatAnswer, WithLittleMemoryMeasureWithLessScratch) {
  libraries().memory_bytes = size_t{20} << 20;
  libraries().by_model[1].scratch_bytes = int64_t{17} << 20;
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 1");
}

TEST_F(LibrariesThatAnswer, ChooseByTheirModelIfNothingCanBeMeasured) {
  for (Engine& engine : libraries().by_model) engine.runs = false;
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 1; by a model");
  libraries().by_model[0].runs = true;
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 1");
}

TEST_F(LibrariesThatAnswer, MeasureTheTimeWithoutThatOfLoading) {
  libraries().milliseconds_of_loading = 100;
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 6");
}

TEST_F(LibrariesThatAnswer, MeasureSixUsableEnginesEachOfThemOnceBeforeOtherKnobs) {
  libraries().by_model = {{.number = 100, .milliseconds = 1, .notes = {random_sums}}};
  for (int64_t knob = 0; knob < 12; ++knob) {
    libraries().by_model.push_back({.number = 7, .milliseconds = 9, .knobs = {{2, knob}}});
  }
  libraries().by_model.push_back({.number = 8, .milliseconds = 9, .can_be_prepared = false});
  libraries().by_model.push_back({.number = 9, .milliseconds = 9});
  libraries().fallbacks = {{.number = 10, .milliseconds = 5}};
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 10");
  EXPECT_THAT(libraries().prepared, ElementsAre(7, 7, 7, 8, 9, 10, 7));
}

TEST_F(LibrariesThatAnswer, MeasureEnginesThatAreCompiledLast) {
  libraries().by_model = {{.number = 2, .milliseconds = 3, .knobs = {{2, 1}}},
                          {.number = 1, .milliseconds = 9, .is_compiled = true},
                          {.number = 2, .milliseconds = 2, .knobs = {{2, 2}}}};
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 2 (2=2)");
  EXPECT_THAT(libraries().prepared, ElementsAre(2, 2, 1));
}

// So that measuring never chooses a slower one.
TEST_F(LibrariesThatAnswer, MeasureWhatTheModelWouldTakeFirst) {
  libraries().by_model = {{.number = 1, .milliseconds = 1, .is_compiled = true},
                          {.number = 2, .milliseconds = 2, .knobs = {{2, 1}}},
                          {.number = 2, .milliseconds = 3, .knobs = {{2, 2}}}};
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 1");
  EXPECT_THAT(libraries().prepared, ElementsAre(1, 2, 2));
}

TEST_F(LibrariesThatAnswer, MeasureInABoundedTimeAfterTheFirstEngineWhichLoadsThem) {
  constexpr std::chrono::milliseconds long_time{350};
  libraries().by_model = {{.number = 1, .milliseconds = 9, .preparing = long_time},
                          {.number = 2, .milliseconds = 8, .preparing = long_time},
                          {.number = 3, .milliseconds = 1}};
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 2");
  EXPECT_THAT(libraries().prepared, ElementsAre(1, 2));
}

TEST_F(LibrariesThatAnswer, UseMoreScratchMemoryOnLargerGpus) {
  constexpr int64_t larger = int64_t{1} << 30;
  libraries().by_model = {{.number = 1, .scratch_bytes = larger}, {.number = 2}};
  EXPECT_EQ(chosen({}), "cuDNN forward engine 2");
  EXPECT_THAT(refusal({"measured: cuDNN forward engine 1", false}), HasSubstr("in 256 MiB"));
  libraries().total_bytes = size_t{80} << 30;
  libraries().memory_bytes = size_t{4} << 30;
  EXPECT_EQ(chosen({}), "cuDNN forward engine 1");
  EXPECT_EQ(measured(), "measured: cuDNN forward engine 1");
  EXPECT_EQ(chosen({"measured: cuDNN forward engine 1", false}),
            "measured: cuDNN forward engine 1");
}

TEST_F(LibrariesThatAnswer, RecordTheKnobsOfTheMeasuredEngineAndUseThemAgain) {
  libraries().by_model = {{.number = 7, .milliseconds = 2, .knobs = {{2, 130}, {13, 64}}},
                          {.number = 7, .milliseconds = 1, .knobs = {{2, 131}, {13, 32}}}};
  const std::string text = measured();
  EXPECT_EQ(text, "measured: cuDNN forward engine 7 (2=131, 13=32)");
  libraries().runs.clear();
  EXPECT_EQ(chosen({text.c_str(), true}), text);
  EXPECT_THAT(libraries().runs, IsEmpty());
}

TEST_F(LibrariesThatAnswer, RefuseARecordedEngineThatIsGone) {
  const std::string end = " for these shapes and this precision in 256 MiB of scratch memory";
  EXPECT_THAT(refusal({"measured: cuDNN forward engine 5", false}),
              HasSubstr("cannot use the recorded forward engine 5" + end));
  EXPECT_THAT(refusal({"measured: cuDNN forward engine 1 (2=3)", false}),
              HasSubstr("cannot use the recorded forward engine 1 (2=3)" + end));
  libraries().by_model[0].can_be_prepared = false;
  EXPECT_THAT(refusal({"measured: cuDNN forward engine 1", false}),
              HasSubstr("cannot use the recorded forward engine 1" + end));
}

TEST_F(LibrariesThatAnswer, RefuseARecordedEngineWithOtherBitsOrOtherArithmetic) {
  libraries().by_model = {{.number = 1, .notes = {random_sums}},
                          {.number = 2, .notes = {tensor_cores}}};
  EXPECT_THAT(refusal({"measured: cuDNN forward engine 1", false}),
              HasSubstr("forward engine 1: it does not always give the same bits"));
  EXPECT_THAT(refusal({"measured: cuDNN forward engine 2 on tensor cores", false}, float32),
              HasSubstr("cannot use the recorded forward engine 2 on tensor cores for these"));
  EXPECT_EQ(chosen({"measured: cuDNN forward engine 2 on tensor cores", false}, tf32),
            "measured: cuDNN forward engine 2 on tensor cores");
}

TEST_F(LibrariesThatAnswer, RefuseARecordThatLacksAPass) {
  EXPECT_THROW(convolution({"measured: cuDNN forward engine 1", false}, {}, true), sdk::Refusal);
  EXPECT_EQ(convolution({"measured: cuDNN forward engine 1, backward weights engine 6", false})
                .algorithm(),
            "measured: cuDNN forward engine 1, backward weights engine 6")
      << "testing takes the record of training";
}

TEST_F(LibrariesThatAnswer, GetTensorsOfBothLayouts) {
  using Tensor = stand_in::Libraries::Tensor;
  static_cast<void>(chosen({}, float32));
  EXPECT_THAT(libraries().tensors,
              ElementsAre(Tensor{1, CUDNN_DATA_FLOAT, {2, 6, 9, 8}, {432, 72, 8, 1}},
                          Tensor{2, CUDNN_DATA_FLOAT, {4, 3, 3, 2}, {18, 6, 2, 1}},
                          Tensor{3, CUDNN_DATA_FLOAT, {2, 4, 5, 5}, {100, 25, 5, 1}}));
  libraries().tensors.clear();
  static_cast<void>(chosen({}, bfloat16));
  EXPECT_THAT(libraries().tensors,
              ElementsAre(Tensor{1, CUDNN_DATA_BFLOAT16, {2, 6, 9, 8}, {432, 1, 48, 6}},
                          Tensor{2, CUDNN_DATA_BFLOAT16, {4, 3, 3, 2}, {18, 1, 6, 3}},
                          Tensor{3, CUDNN_DATA_BFLOAT16, {2, 4, 5, 5}, {100, 1, 20, 4}}));
}

TEST_F(LibrariesThatAnswer, AddInFloat32) {
  using Window = stand_in::Libraries::Window;
  for (const ConvolutionKind& kind : {float32, tf32, bfloat16, kind_of(TANDEM_FLOAT16)}) {
    libraries().windows.clear();
    static_cast<void>(chosen({}, kind));
    EXPECT_THAT(libraries().windows, ElementsAre(Window{{1, 1}, {2, 2}, {1, 1}, CUDNN_DATA_FLOAT}));
  }
}

TEST_F(LibrariesThatAnswer, RunEveryPassOnItsOperands) {
  std::array<char, 515> memory{};
  void *x = &memory[0], *weight = &memory[1], *y = &memory[2], *scratch = &memory[3];
  const Convolution all = convolution({}, {}, true);
  EXPECT_EQ(all.algorithm(),
            "cuDNN forward engine 1, backward data engine 1, backward weights engine 1");
  all.forward(call, x, weight, nullptr, y, scratch);
  all.backward_data(call, weight, y, x, scratch);
  all.backward_weights(call, x, y, weight, scratch);
  ASSERT_EQ(libraries().runs.size(), 3U);
  const std::array operations{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                              CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                              CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(libraries().runs[i].operation, operations[i]);
    EXPECT_THAT(libraries().runs[i].operands, ElementsAre(x, weight, y, nullptr)) << i;
    const auto at = reinterpret_cast<uintptr_t>(libraries().runs[i].scratch);
    EXPECT_EQ(at % 256, 0U);
    EXPECT_LT(at - reinterpret_cast<uintptr_t>(scratch), 256U);
  }
}

TEST_F(LibrariesThatAnswer, AddTheBiasInTheKernelOfTheForwardPass) {
  using Tensor = stand_in::Libraries::Tensor;
  std::array<char, 516> memory{};
  void *x = &memory[0], *weight = &memory[1], *y = &memory[2], *bias = &memory[3];
  libraries().by_model[0].notes = {tensor_cores};
  const Convolution one(call, shape, bfloat16, false, false, {}, {.adds_bias = true});
  EXPECT_TRUE(one.adds_bias());
  EXPECT_EQ(one.algorithm(), "cuDNN forward engine 1 with bias on tensor cores");
  EXPECT_THAT(libraries().elementwise, ElementsAre(CUDNN_POINTWISE_ADD));
  EXPECT_THAT(libraries().tensors,
              testing::AllOf(Contains(Tensor{4, CUDNN_DATA_BFLOAT16, {1, 4, 1, 1}, {4, 1, 4, 4}}),
                             Contains(Tensor{5, CUDNN_DATA_FLOAT, {2, 4, 5, 5}, {100, 1, 20, 4}})));
  one.forward(call, x, weight, bias, y, &memory[4]);
  ASSERT_EQ(libraries().runs.size(), 1U);
  EXPECT_THAT(libraries().runs[0].operands, ElementsAre(x, weight, y, bias));
  const Convolution rectified(call, shape, bfloat16, false, false, {}, {true, true});
  EXPECT_THAT(libraries().elementwise, ElementsAre(CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD));
}

TEST_F(LibrariesThatAnswer, LeaveTheBiasToOthersWhereTheyHaveNoTensorCoresForIt) {
  const auto algorithm = [&](const ConvolutionChoice& how) {
    const Convolution one(call, shape, bfloat16, false, false, how, {.adds_bias = true});
    EXPECT_FALSE(one.adds_bias());
    return one.algorithm();
  };
  EXPECT_EQ(algorithm({}), "cuDNN forward engine 1");
  for (Engine& engine : libraries().by_model) engine.notes = {tensor_cores};
  libraries().model_knows_fused_graphs = false;
  EXPECT_EQ(algorithm({}), "cuDNN forward engine 1 on tensor cores");
  EXPECT_EQ(algorithm({nullptr, true}), "measured: cuDNN forward engine 6 on tensor cores");
}

TEST_F(LibrariesThatAnswer, TakeARecordWithOrWithoutABiasAsItIs) {
  const char *with = "measured: cuDNN forward engine 6 with bias on tensor cores",
             *without = "measured: cuDNN forward engine 6 on tensor cores";
  for (Engine& engine : libraries().by_model) engine.notes = {tensor_cores};
  const auto adding = [&](const ConvolutionChoice& how) {
    return Convolution(call, shape, bfloat16, false, false, how, {.adds_bias = true});
  };
  EXPECT_EQ(adding({nullptr, true}).algorithm(), with);
  EXPECT_TRUE(adding({with, false}).adds_bias());
  EXPECT_FALSE(adding({without, false}).adds_bias());
  EXPECT_THAT(refusal({with, false}, bfloat16),
              HasSubstr("cannot use the recorded forward engine 6 with bias"));
}

TEST_F(LibrariesThatAnswer, NameThePassesOfADeconvolutionAsTheLayerDoes) {
  ConvolutionKind deconvolution;
  deconvolution.deconvolves = true;
  EXPECT_EQ(chosen({}, deconvolution), "cuDNN backward data engine 1");
  EXPECT_EQ(convolution({"measured: cuDNN forward engine 6, backward data engine 1", false},
                        deconvolution)
                .algorithm(),
            "measured: cuDNN forward engine 6, backward data engine 1");
  EXPECT_EQ(libraries().prepared.back(), 1);
}

TEST_F(LibrariesThatAnswer, ReportAPlanThatDoesNotRun) {
  libraries().by_model[0].runs = false;
  const Convolution one = convolution({});
  EXPECT_THROW(one.forward(call, nullptr, nullptr, nullptr, nullptr, nullptr), sdk::Refusal);
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
