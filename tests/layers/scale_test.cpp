// Scale, Bias and PReLU, whose values are broadcast over axes: float64 vectors, finite differences,
// sums whose bits do not depend on threads, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;
using Parameters = std::vector<std::pair<std::string, std::string>>;

TEST(Scale, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("scale", "Scale");
  expect_reference("scale_by_input", "Scale");
}
TEST(Bias, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("bias", "Bias");
  expect_reference("bias_by_input", "Bias");
}
TEST(Prelu, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("prelu", "PReLU");
}

void check_in_layouts(const LayerSetup& setup, size_t layouts) {
  const std::vector<LayerSetup> setups = in_every_layout(setup);
  EXPECT_EQ(setups.size(), kernels_run_on_a_cpu() ? layouts : std::min<size_t>(layouts, 2));
  for (const LayerSetup& one : setups) check_gradients(one);
}

TEST(Scale, HasTheBitsOfTheGradientsOfAScaleAndABias) {
  const PlainTensor x = random_tensor({3, 24, 15, 13}, 41), dy = random_tensor(x.shape, 42);
  const PlainTensor factors = random_tensor({24, 1, 1, 1}, 43), biases = factors;
  const auto gradients = [&](LayerSetup setup) {
    LayerRun run(setup);
    (void)run.forward();
    return run.backward_weights({dy});
  };
  for (const LayerSetup& layout :
       in_every_layout({.type = "Scale", .inputs = {x}, .weights = {factors}})) {
    LayerSetup both = layout, bias = layout;
    both.parameters = {{"bias_term", "true"}};
    both.weights = {factors, biases};
    bias.type = "Bias";
    const std::vector<PlainTensor> together = gradients(both);
    EXPECT_EQ(together[0].values, gradients(layout)[0].values) << layout_text(layout);
    EXPECT_EQ(together[1].values, gradients(bias)[0].values) << layout_text(layout);
  }
}

TEST(Scale, GradientsMatchDifferences) {
  check_in_layouts({.type = "Scale",
                    .parameters = {{"bias_term", "true"}},
                    .inputs = {random_tensor({2, 8, 2, 3}, 31)},
                    .weights = {random_tensor({8, 1, 1, 1}, 32), random_tensor({8, 1, 1, 1}, 33)}},
                   3);
  check_in_layouts({.type = "Scale",
                    .parameters = {{"axis", "2"}, {"num_axes", "-1"}},
                    .inputs = {random_tensor({2, 8, 2, 3}, 34)},
                    .weights = {random_tensor({2, 3, 1, 1}, 35)}},
                   1);
}

TEST(Scale, ByASecondInputHasGradientsForBothInputs) {
  for (const Shape& values : {Shape{2, 8, 1, 1}, Shape{2, 8, 2, 3}}) {
    check_in_layouts({.type = "Scale",
                      .parameters = {{"axis", "0"}},
                      .inputs = {random_tensor({2, 8, 2, 3}, 36), random_tensor(values, 37)}},
                     3);
  }
}

TEST(Bias, GradientsMatchDifferences) {
  check_in_layouts({.type = "Bias",
                    .inputs = {random_tensor({2, 8, 2, 3}, 38)},
                    .weights = {random_tensor({8, 1, 1, 1}, 39)}},
                   3);
}

TEST(Prelu, GradientsMatchDifferences) {
  PlainTensor inputs = random_tensor({2, 8, 2, 3}, 40);
  for (float& value : inputs.values) value += std::copysign(0.1F, value);  // away from the kink
  check_in_layouts(
      {.type = "PReLU", .inputs = {inputs}, .weights = {random_tensor({8, 1, 1, 1}, 41)}}, 3);
  check_in_layouts({.type = "PReLU",
                    .parameters = {{"channel_shared", "true"}},
                    .inputs = {inputs},
                    .weights = {random_tensor({1, 1, 1, 1}, 42)}},
                   3);
}

// Enough elements for several threads.
LayerSetup large(const std::string& type) {
  return {.type = type,
          .inputs = {random_tensor({9, 16, 31, 33}, 43)},
          .weights = {random_tensor({16, 1, 1, 1}, 44)}};
}

TEST(BroadcastValues, HaveTheSameBitsOnAnyNumberOfThreads) {
  for (const std::string type : {"Scale", "Bias", "PReLU"}) {
    for (LayerSetup setup : in_every_layout(large(type))) {
      SCOPED_TRACE(type + " " + layout_text(setup));
      const std::vector<PlainTensor> factors{random_tensor({9, 16, 31, 33}, 45)};
      LayerRun two(setup);
      setup.threads = 1;
      LayerRun one(setup);
      EXPECT_EQ(one.forward()[0].values, two.forward()[0].values);
      EXPECT_EQ(one.backward_data(factors)[0].values, two.backward_data(factors)[0].values);
      EXPECT_EQ(one.backward_weights(factors)[0].values, two.backward_weights(factors)[0].values);
    }
  }
}

// A plain float sum over these 9207 elements has an error of more than 1e-6.
TEST(BroadcastValues, HaveExactSumsOfManyElements) {
  for (const LayerSetup& setup : in_every_layout(large("Scale"))) {
    const std::vector<PlainTensor> ones{{{9, 16, 31, 33}, std::vector<float>(147312, 1)}};
    LayerRun run(setup);
    const std::vector<float> sums = run.backward_weights(ones)[0].values;
    std::vector<double> expected(16);
    for (size_t i = 0; i < 147312; ++i) {
      expected[i / (31 * 33) % 16] += static_cast<double>(setup.inputs[0].values[i]);
    }
    EXPECT_LE(relative_difference(sums, expected), 5e-7) << layout_text(setup);
  }
}

TEST(BroadcastValues, AccumulateWeightGradientsOnRequest) {
  for (const std::string type : {"Scale", "Bias", "PReLU"}) {
    LayerRun run(large(type));
    const std::vector<PlainTensor> factors{random_tensor({9, 16, 31, 33}, 46)};
    const std::vector<float> fresh = run.backward_weights(factors)[0].values;
    const PlainTensor start = random_tensor({16, 1, 1, 1}, 47, 10);
    std::vector<float> expected;
    for (size_t i = 0; i < 16; ++i) expected.push_back(start.values[i] + fresh[i]);
    EXPECT_EQ(run.backward_weights(factors, {start})[0].values, expected) << type;
  }
}

TEST(Bias, InPlaceGivesTheSameBits) {
  LayerSetup setup = large("Bias");
  const std::vector<PlainTensor> factors{random_tensor({9, 16, 31, 33}, 48)};
  LayerRun apart(setup);
  setup.flags |= TANDEM_RUNS_IN_PLACE;
  LayerRun together(setup);
  EXPECT_EQ(together.forward()[0].values, apart.forward()[0].values);
  EXPECT_EQ(together.backward_weights(factors)[0].values,
            apart.backward_weights(factors)[0].values);
  EXPECT_EQ(together.backward_data(factors)[0].values, apart.backward_data(factors)[0].values);
}

TEST(BroadcastValues, HaveTheInitialValuesOfCaffe) {
  LayerSetup scale = large("Scale");
  scale.parameters = {{"bias_term", "true"}};
  scale.weights.push_back(scale.weights[0]);
  const std::vector<tandem_weight> weights = LayerRun(scale).declared_weights();
  EXPECT_EQ(weights[0].initial, 1);
  EXPECT_STREQ(weights[0].filler, "filler");
  EXPECT_STREQ(weights[1].filler, "bias_filler");
  EXPECT_EQ(LayerRun(large("PReLU")).declared_weights()[0].initial, 0.25);
}

std::string refusal(const std::string& type, const Parameters& parameters,
                    const std::vector<Shape>& shapes) {
  LayerSetup setup{.type = type, .parameters = parameters};
  for (const Shape& shape : shapes) setup.inputs.push_back(random_tensor(shape, 1));
  return refusal_of(setup);
}

TEST(BroadcastValues, RefuseAxesThatDoNotFit) {
  for (const std::string type : {"Scale", "Bias"}) {
    EXPECT_EQ(
        refusal(type, {{"axis", "0"}}, {{2, 3, 4, 5}}),
        type + ": axis 0 is the batch, whose rows cannot have their own weights: begin at axis 1");
    EXPECT_EQ(refusal(type, {{"axis", "2"}, {"num_axes", "3"}}, {{2, 3, 4, 5}}),
              type + ": num_axes 3 from axis 2 on exceeds the 4 axes of its input 2x3x4x5");
    EXPECT_EQ(refusal(type, {{"axis", "-1"}}, {{2, 3, 1, 1}}),
              type +
                  ": axis -1 counts from the last axis, but this 2x3x1x1 input may have two "
                  "axes or four: write axis 1");
    EXPECT_THAT(refusal(type, {{"axis", "4"}}, {{2, 3, 4, 5}}), HasSubstr("axis is '4'"));
    EXPECT_EQ(refusal(type, {}, {{2, 3, 4, 5}, {2, 3, 1, 1}}),
              type +
                  ": axis is 1, but with two inputs it must be 0: each row of the batch has "
                  "its own values");
    EXPECT_EQ(
        refusal(type, {{"axis", "0"}}, {{2, 3, 4, 5}, {2, 4, 1, 1}}),
        type + ": input 1 is 2x4x1x1, which does not match the first axes of input 0, 2x3x4x5");
  }
}

TEST(Scale, RefusesABiasForEachRowOfTheBatch) {
  EXPECT_EQ(refusal("Scale", {{"axis", "0"}, {"bias_term", "true"}}, {{2, 3, 4, 5}, {2, 3, 1, 1}}),
            "Scale: bias_term with two inputs would need a bias for each row of the batch: add a "
            "Bias layer after it");
}

}  // namespace
}  // namespace tandem::test
