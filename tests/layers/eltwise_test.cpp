// Eltwise: float64 vectors, finite differences, in place, equal values, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

const std::vector<Parameters>& operations() {
  static const std::vector<Parameters> all{
      {},
      {{"coeff", "0.5"}, {"coeff", "-2"}, {"coeff", "1"}},
      {{"operation", "PROD"}},
      {{"operation", "PROD"}, {"stable_prod_grad", "false"}},
      {{"operation", "MAX"}},
      {{"operation", "MIN"}},
      {{"operation", "DIV"}},
      {{"operation", "POW"}},
  };
  return all;
}

// As many inputs as the operation takes.
std::vector<PlainTensor> inputs_of(const Parameters& operation, std::vector<PlainTensor> three) {
  const std::string name = operation.empty() ? "" : operation[0].second;
  if (name == "DIV" || name == "POW") three.pop_back();
  return three;
}

std::vector<PlainTensor> three(const Shape& shape) {
  return {random_tensor(shape, 51), random_tensor(shape, 52), random_tensor(shape, 53)};
}

TEST(Eltwise, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("eltwise", "Eltwise");
}

TEST(Eltwise, GradientsMatchDifferences) {
  // No two inputs are closer to each other, and none is closer to zero, than the step.
  std::vector<PlainTensor> inputs = three({2, 8, 2, 3});
  for (size_t i = 0; i < inputs[0].values.size(); ++i) {
    for (size_t k = 0; k < 3; ++k) {
      inputs[k].values[i] = 0.3F + 0.4F * static_cast<float>((i * 7 + k * (i % 2 + 1)) % 3);
    }
  }
  for (const Parameters& parameters : operations()) {
    for (const LayerSetup& setup : in_every_layout({.type = "Eltwise",
                                   .parameters = parameters,
                                   .inputs = inputs_of(parameters, inputs)})) {
      check_gradients(setup);
    }
  }
}

TEST(Eltwise, PassesANanOnAsTheMaximum) {
  for (size_t input = 0; input < 3; ++input) {
    LayerSetup setup{.type = "Eltwise", .parameters = {{"operation", "MAX"}}, .inputs = {}};
    for (unsigned i = 0; i < 3; ++i) setup.inputs.push_back(random_tensor({2, 8, 3, 3}, i));
    setup.inputs[input].values[5] = NAN;
    const std::vector<float> y = LayerRun(setup).forward()[0].values;
    EXPECT_TRUE(std::isnan(y[5])) << input;
    EXPECT_EQ(std::count_if(y.begin(), y.end(), [](float v) { return std::isnan(v); }), 1);
  }
}

TEST(Split, TakesAGradientThatIsAbsentForZeros) {
  const LayerSetup setup{
      .type = "Split", .inputs = {random_tensor({2, 8, 3, 3}, 1)}, .output_count = 3};
  const Shape shape = setup.inputs[0].shape;
  for (size_t absent = 0; absent < 3; ++absent) {
    std::vector<PlainTensor> gradients{random_tensor(shape, 2), random_tensor(shape, 3),
                                       random_tensor(shape, 4)};
    gradients[absent].values.assign(gradients[absent].values.size(), 0.0F);
    LayerRun whole(setup), part(setup);
    std::vector<bool> gone(3);
    gone[absent] = true;
    part.leave_out({}, gone);
    static_cast<void>(whole.forward());
    static_cast<void>(part.forward());
    EXPECT_EQ(part.backward_data(gradients)[0].values, whole.backward_data(gradients)[0].values);
  }
}

TEST(Eltwise, ThreadsAndInPlaceMemoryGiveTheSameBits) {
  const Shape shape{2, 3, 111, 113};
  const std::vector<PlainTensor> gradient{random_tensor(shape, 54)};
  for (const Parameters& parameters : operations()) {
    LayerSetup setup{
        .type = "Eltwise", .parameters = parameters, .inputs = inputs_of(parameters, three(shape))};
    // A power of a negative number is none.
    for (float& value : setup.inputs[0].values) value = std::abs(value);
    LayerRun apart(setup);
    setup.threads = 1;
    setup.flags |= TANDEM_RUNS_IN_PLACE;
    LayerRun together(setup);
    EXPECT_EQ(together.forward()[0].values, apart.forward()[0].values);
    const std::vector<PlainTensor> expected = apart.backward_data(gradient);
    const std::vector<PlainTensor> actual = together.backward_data(gradient);
    for (size_t k = 0; k < setup.inputs.size(); ++k) {
      EXPECT_EQ(actual[k].values, expected[k].values) << k;
    }
  }
}

TEST(Eltwise, SavesNothingForASumOrInTesting) {
  LayerSetup setup{.type = "Eltwise", .inputs = three({2, 3, 4, 5})};
  EXPECT_EQ(LayerRun(setup).report().saved_bytes, 0);
  setup.parameters = {{"operation", "PROD"}};
  EXPECT_EQ(LayerRun(setup).report().saved_bytes, 3 * 4 * 120);
  setup.flags = 0;
  EXPECT_EQ(LayerRun(setup).report().saved_bytes, 0);
}

TEST(Eltwise, GivesTheGradientOfEqualValuesToOneInput) {
  const Shape shape{1, 1, 1, 1};
  LayerRun run({.type = "Eltwise",
                .parameters = {{"operation", "MAX"}},
                .inputs = {{shape, {2}}, {shape, {2}}, {shape, {2}}}});
  EXPECT_EQ(run.forward()[0].values[0], 2);
  const std::vector<PlainTensor> gradients = run.backward_data({{shape, {5}}});
  EXPECT_EQ(gradients[0].values[0], 0);
  EXPECT_EQ(gradients[1].values[0], 5);
  EXPECT_EQ(gradients[2].values[0], 0);
}

TEST(Eltwise, HasAStableGradientIfAnInputIsZero) {
  const Shape shape{1, 1, 1, 1};
  LayerRun run({.type = "Eltwise",
                .parameters = {{"operation", "PROD"}},
                .inputs = {{shape, {0}}, {shape, {3}}}});
  (void)run.forward();
  EXPECT_EQ(run.backward_data({{shape, {2}}})[0].values[0], 6);
}

std::string refusal(const Parameters& parameters, const std::vector<Shape>& shapes) {
  LayerSetup setup{.type = "Eltwise", .parameters = parameters};
  for (const Shape& shape : shapes) setup.inputs.push_back(random_tensor(shape, 1));
  return refusal_of(setup);
}

TEST(Eltwise, RefusesInputsThatDoNotFit) {
  const Shape s{2, 3, 4, 5};
  EXPECT_EQ(refusal({}, {s, {2, 3, 5, 4}}),
            "Eltwise: input 1 is 2x3x5x4, but input 0 is 2x3x4x5: shapes must be equal");
  EXPECT_EQ(refusal({{"coeff", "1"}}, {s, s}),
            "Eltwise: has 1 coeff for 2 inputs: write one for each, or none");
  EXPECT_EQ(refusal({{"operation", "MAX"}, {"coeff", "1"}, {"coeff", "2"}}, {s, s}),
            "Eltwise: coeff is for operation SUM only, not for MAX");
  EXPECT_THAT(refusal({{"coeff", "one"}, {"coeff", "2"}}, {s, s}),
              testing::HasSubstr("coeff is 'one'"));
  EXPECT_EQ(refusal({{"operation", "MAX"}}, std::vector<Shape>(256, s)),
            "Eltwise: takes at most 255 inputs with operation MAX, not 256");
}

}  // namespace
}  // namespace tandem::test
