// Layers that work element by element: compared with float64 vectors and finite differences, and
// tested at the edges of their domains, in place, and with invalid parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "layers/common/vector_math.h"
#include "layers/gelu/gelu_formula.h"
#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;
using Parameters = std::vector<std::pair<std::string, std::string>>;

struct Use {
  const char* type;
  Parameters parameters;
};

const std::vector<Use>& differentiable() {
  static const std::vector<Use> uses{
      {"Sigmoid", {}},
      {"TanH", {}},
      {"ELU", {{"alpha", "0.7"}}},
      {"Clip", {{"min", "-20"}, {"max", "0.05"}}},
      {"Swish", {{"beta", "1.3"}}},
      {"SiLU", {}},
      {"GELU", {}},
      {"GELU", {{"approximate", "tanh"}}},
      {"HardSigmoid", {}},
      {"HardSwish", {}},
      {"BNLL", {}},
      {"AbsVal", {}},
      {"Exp", {{"base", "2"}, {"scale", "-0.5"}, {"shift", "0.3"}}},
      {"Log", {{"base", "10"}, {"scale", "0.3"}, {"shift", "4"}}},
      {"Power", {{"power", "3"}, {"scale", "0.3"}, {"shift", "4"}}},
      {"Power", {{"power", "2"}, {"scale", "0.3"}}},
  };
  return uses;
}

// Away from zero, where AbsVal and ELU have kinks.
PlainTensor smooth_tensor(const Shape& shape, unsigned seed) {
  PlainTensor result = random_tensor(shape, seed);
  for (float& value : result.values) value += std::copysign(0.1F, value);
  return result;
}

float value_at(const Use& use, float x) {
  const LayerSetup setup{
      .type = use.type, .parameters = use.parameters, .inputs = {{{1, 1, 1, 1}, {x}}}};
  return LayerRun(setup).forward()[0].values[0];
}

TEST(Elementwise, GradientsMatchDifferencesInEveryLayout) {
  for (const Use& use : differentiable()) {
    SCOPED_TRACE(use.type);
    const LayerSetup plain{.type = use.type,
                           .parameters = use.parameters,
                           .inputs = {smooth_tensor({2, 8, 2, 3}, 21)}};
    const std::vector<LayerSetup> setups = in_every_layout(plain);
    EXPECT_EQ(setups.size(), kernels_run_on_a_cpu() ? 3U : 2U);
    for (const LayerSetup& setup : setups) check_gradients(setup);
  }
}

// Enough elements for several threads, and a remainder that does not fill a vector.
TEST(Elementwise, ThreadsInPlaceMemoryAndAnotherKernelGiveTheSameBits) {
  std::vector<Use> uses = differentiable();
  uses.push_back({"ReLU", {}});
  uses.push_back({"ReLU", {{"negative_slope", "0.1"}}});
  const Shape shape{1, 3, 111, 113};
  const PlainTensor gradient = random_tensor(shape, 2);
  for (const Use& use : uses) {
    SCOPED_TRACE(use.type);
    LayerSetup setup{
        .type = use.type, .parameters = use.parameters, .inputs = {random_tensor(shape, 1)}};
    LayerRun apart(setup);
    const std::vector<float> values = apart.forward()[0].values;
    const std::vector<float> gradients = apart.backward_data({gradient})[0].values;
    setup.threads = 1;
    const bool in_place = (apart.type().traits & TANDEM_BACKWARD_READS_INPUTS) == 0;
    if (in_place) setup.flags |= TANDEM_RUNS_IN_PLACE;
    LayerRun other(setup);
    EXPECT_EQ(other.forward()[0].values, values);
    EXPECT_EQ(other.backward_data({gradient})[0].values, gradients);
  }
}

// The test is compiled for baseline instructions, the kernel for the CPU's widest vectors.
TEST(Elementwise, LayersHaveTheBitsOfTheirFormulasWithEveryInstructionSetOnACpu) {
  const Shape shape{2, 3, 41, 47};
  LayerSetup setup{.type = "GELU", .inputs = {random_tensor(shape, 70)}};
  setup.on_a_cpu = true;
  const PlainTensor dy = random_tensor(shape, 71);
  LayerRun run(setup);
  const std::vector<float> y = run.forward()[0].values;
  const std::vector<float> dx = run.backward_data({dy})[0].values;
  std::vector<float> values, gradients;
  for (size_t i = 0; i < y.size(); ++i) {
    values.push_back(layers::ExactGelu::value(setup.inputs[0].values[i]));
    gradients.push_back(dy.values[i] * layers::ExactGelu::slope(setup.inputs[0].values[i]));
  }
  EXPECT_EQ(y, values);
  EXPECT_EQ(dx, gradients);
}

TEST(Elementwise, LayersRunInPlaceInTesting) {
  for (const Use& use : differentiable()) {
    LayerSetup setup{.type = use.type,
                     .parameters = use.parameters,
                     .inputs = {random_tensor({2, 3, 5, 7}, 1)},
                     .phase = TANDEM_TEST,
                     .flags = 0};
    LayerRun apart(setup);
    EXPECT_NE(apart.type().traits & TANDEM_IN_PLACE, 0U) << use.type;
    setup.flags = TANDEM_RUNS_IN_PLACE;
    EXPECT_EQ(apart.forward()[0].values, LayerRun(setup).forward()[0].values) << use.type;
  }
}

TEST(Elementwise, NanStaysNan) {
  for (const Use& use : differentiable()) {
    EXPECT_TRUE(std::isnan(value_at(use, NAN))) << use.type;
  }
}

TEST(Elementwise, SaturatedFunctionsReachTheirLimits) {
  EXPECT_EQ(value_at({"Sigmoid", {}}, 200), 1);
  EXPECT_EQ(value_at({"Sigmoid", {}}, -200), 0);
  EXPECT_EQ(value_at({"TanH", {}}, INFINITY), 1);
  EXPECT_EQ(value_at({"TanH", {}}, -200), -1);
  EXPECT_EQ(value_at({"ELU", {{"alpha", "2"}}}, -200), -2);
  EXPECT_EQ(value_at({"BNLL", {}}, 200), 200);
  EXPECT_EQ(value_at({"BNLL", {}}, -200), 0);
  EXPECT_EQ(value_at({"GELU", {}}, 200), 200);
  EXPECT_EQ(value_at({"GELU", {}}, -200), 0);
  EXPECT_EQ(value_at({"Swish", {}}, -200), 0);
  EXPECT_EQ(value_at({"HardSigmoid", {}}, 200), 1);
  EXPECT_EQ(value_at({"HardSigmoid", {}}, -200), 0);
  EXPECT_EQ(value_at({"HardSwish", {}}, 200), 200);
  EXPECT_EQ(value_at({"HardSwish", {}}, -200), 0);
  EXPECT_EQ(value_at({"Exp", {}}, 200), INFINITY);
  EXPECT_EQ(value_at({"Exp", {}}, -200), 0);
  EXPECT_EQ(value_at({"Log", {}}, 0), -INFINITY);
  EXPECT_EQ(value_at({"Log", {}}, INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(value_at({"Log", {}}, -1)));
  EXPECT_FLOAT_EQ(value_at({"Log", {}}, 1e-40F), std::log(1e-40F));
}

TEST(Elementwise, PowersOfZeroAndOfNegativeBasesEqualThoseOfTheCLibrary) {
  EXPECT_EQ(value_at({"Power", {{"power", "0"}}}, 0), 1);
  EXPECT_EQ(value_at({"Power", {{"power", "3"}}}, -2), -8);
  EXPECT_TRUE(std::isnan(value_at({"Power", {{"power", "0.5"}}}, -2)));
  EXPECT_EQ(value_at({"Power", {{"power", "-1"}}}, 0), INFINITY);
}

TEST(AbsVal, HasSlopeZeroAtZero) {
  LayerRun run({.type = "AbsVal", .inputs = {{{1, 3, 1, 1}, {0, -2, 3}}}});
  EXPECT_EQ(run.forward()[0].values, (std::vector<float>{0, 2, 3}));
  EXPECT_EQ(run.backward_data({{{1, 3, 1, 1}, {5, 5, 5}}})[0].values,
            (std::vector<float>{0, -5, 5}));
}

TEST(Threshold, IsStrict) {
  const Use use{"Threshold", {{"threshold", "0.5"}}};
  EXPECT_EQ(value_at(use, 0.5F), 0);
  EXPECT_EQ(value_at(use, 0.50001F), 1);
}

TEST(Silence, HasNoOutputs) {
  LayerRun run({.type = "Silence",
                .inputs = {random_tensor({2, 3, 2, 2}, 1), random_tensor({2, 1, 1, 1}, 2)},
                .output_count = 0});
  EXPECT_TRUE(run.forward().empty());
}

TEST(SiLU, IsSwishWithABetaOfOne) {
  const PlainTensor values = random_tensor({2, 3, 5, 7}, 1);
  LayerRun silu({.type = "SiLU", .inputs = {values}});
  LayerRun swish({.type = "Swish", .inputs = {values}});
  EXPECT_EQ(silu.forward()[0].values, swish.forward()[0].values);
  EXPECT_EQ(silu.backward_data({values})[0].values, swish.backward_data({values})[0].values);
}

std::string refusal(const char* type, const Parameters& parameters) {
  return refusal_of(
      {.type = type, .parameters = parameters, .inputs = {random_tensor({1, 3, 2, 2}, 1)}});
}

TEST(Elementwise, BasesWithoutALogarithmAreRefused) {
  for (const std::string type : {"Exp", "Log"}) {
    EXPECT_EQ(refusal(type.c_str(), {{"base", "0"}}),
              type + ": base 0 is not above zero (or -1, which means e)");
    EXPECT_EQ(refusal(type.c_str(), {{"base", "-2"}}),
              type + ": base -2 is not above zero (or -1, which means e)");
  }
  EXPECT_EQ(refusal("Log", {{"base", "1"}}), "Log: base 1 has no logarithm: every power of 1 is 1");
  EXPECT_EQ(refusal("Exp", {{"base", "1"}}), "");
}

TEST(Elementwise, ParametersOutOfTheirRangeAreRefused) {
  EXPECT_THAT(refusal("ELU", {{"alpha", "-1"}}), HasSubstr("alpha is '-1'"));
  EXPECT_THAT(refusal("GELU", {{"approximate", "erf"}}), HasSubstr("approximate is 'erf'"));
  EXPECT_THAT(refusal("Sigmoid", {{"engine", "GPU"}}), HasSubstr("engine is 'GPU'"));
}

TEST(Elementwise, ClipKeepsToItsBoundsAndANanStaysANan) {
  const Use relu6{"Clip", {{"min", "0"}, {"max", "6"}}};
  EXPECT_EQ(value_at(relu6, -3), 0);
  EXPECT_EQ(value_at(relu6, 5.5F), 5.5F);
  EXPECT_EQ(value_at(relu6, 7), 6);
  EXPECT_TRUE(std::isnan(value_at(relu6, std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(refusal("Clip", {{"min", "6"}, {"max", "6"}}), "Clip: min 6 is not below max 6");
}

TEST(Elementwise, LayersAgreeWithTheReferenceInEveryLayout) {
  const std::vector<std::pair<const char*, const char*>> files{{"sigmoid", "Sigmoid"},
                                                               {"tanh", "TanH"},
                                                               {"elu", "ELU"},
                                                               {"clip", "Clip"},
                                                               {"swish", "Swish"},
                                                               {"silu", "SiLU"},
                                                               {"gelu", "GELU"},
                                                               {"bnll", "BNLL"},
                                                               {"hard_sigmoid", "HardSigmoid"},
                                                               {"hard_swish", "HardSwish"},
                                                               {"absval", "AbsVal"},
                                                               {"exp", "Exp"},
                                                               {"log", "Log"},
                                                               {"power", "Power"},
                                                               {"threshold", "Threshold"}};
  for (const auto& [file, type] : files) {
    SCOPED_TRACE(type);
    expect_reference(file, type);
  }
}

// The largest error of a function over [low, high], relative to its value.
template <class Function, class Truth>
double max_error(float low, float high, const Function& function, const Truth& truth) {
  double largest = 0;
  constexpr int steps = 200000;
  for (int i = 0; i <= steps; ++i) {
    const float x = low + (high - low) * (static_cast<float>(i) / steps);
    const double exact = truth(static_cast<double>(x));
    if (std::abs(exact) < 1e-37) continue;
    largest = std::max(largest, std::abs((static_cast<double>(function(x)) - exact) / exact));
  }
  return largest;
}

// Under UBSan also that no step overflows.
TEST(VectorMath, HasTheLogarithmsOfZeroNegativeNumbersAndInfinity) {
  using layers::logarithm;
  EXPECT_EQ(logarithm(0.0F), -INFINITY);
  EXPECT_EQ(logarithm(-0.0F), -INFINITY);
  EXPECT_EQ(logarithm(INFINITY), INFINITY);
  for (const float x : {-1e-40F, -1e-30F, -1.0F, -3e38F, -INFINITY, NAN}) {
    EXPECT_TRUE(std::isnan(logarithm(x))) << x;
  }
}

TEST(VectorMath, HasTheDocumentedAccuracy) {
  using namespace layers;
  const auto exp = [](double x) { return std::exp(x); };
  const auto log = [](double x) { return std::log(x); };
  const auto log1p = [](double x) { return std::log1p(x); };
  const auto below = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  EXPECT_LE(max_error(-85, 88, exponential, exp), 2e-7);
  EXPECT_LE(max_error(-80, 20, exponential_minus_one, [](double x) { return std::expm1(x); }),
            3e-7);
  EXPECT_LE(max_error(-80, 80, logistic, [](double x) { return 1 / (1 + std::exp(-x)); }), 4e-7);
  EXPECT_LE(max_error(-10, 10, hyperbolic_tangent, [](double x) { return std::tanh(x); }), 3e-7);
  EXPECT_LE(max_error(1e-30F, 5, logarithm, log), 3e-7);
  EXPECT_LE(max_error(1, 1e30F, logarithm, log), 3e-7);
  EXPECT_LE(max_error(0, 1, logarithm_of_one_plus, log1p), 3e-7);
  EXPECT_LE(max_error(
                -3, 8, [](float x) { return Normal(x).below; }, below),
            1e-6);
}

}  // namespace
}  // namespace tandem::test
