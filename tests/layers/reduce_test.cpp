// Layers that reduce or normalize over axes, and Embed: Reduction, ArgMax, MVN, LayerNorm, LRN
// within a channel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Parameters = std::vector<std::pair<std::string, std::string>>;

std::string refused(const std::string& type, const Shape& input, const Parameters& parameters) {
  return refusal_of({.type = type, .parameters = parameters, .inputs = {random_tensor(input, 1)}});
}

// No value within 0.1 of zero, where absolute values have a kink.
PlainTensor without_zero(const Shape& shape, unsigned seed) {
  PlainTensor result = random_tensor(shape, seed);
  for (float& value : result.values) value += std::copysign(0.1F, value);
  return result;
}

void expect_same_bits_on_any_threads(LayerSetup setup) {
  for (LayerSetup& one : in_every_layout(setup)) {
    SCOPED_TRACE(layout_text(one));
    one.threads = 1;
    LayerRun alone(one);
    one.threads = 3;
    LayerRun several(one);
    EXPECT_EQ(alone.forward()[0].values, several.forward()[0].values);
    const std::vector<PlainTensor> factors{random_tensor(alone.output_shapes()[0], 9)};
    EXPECT_EQ(alone.backward_data(factors)[0].values, several.backward_data(factors)[0].values);
    if (setup.weights.empty()) continue;
    EXPECT_EQ(alone.backward_weights(factors)[0].values,
              several.backward_weights(factors)[0].values);
  }
}

TEST(Reduction, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("reduction", "Reduction");
}
TEST(ArgMax, AgreesWithTheReference) {
  expect_reference("argmax", "ArgMax", 1e-11);
}
TEST(Mvn, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("mvn", "MVN", 5e-6);
}
TEST(LayerNorm, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("layer_norm", "LayerNorm", 2e-6);
}
TEST(LrnWithinChannel, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("lrn_within_channel", "LRN", 2e-6);
}
TEST(Embed, AgreesWithTheReference) {
  expect_reference("embed", "Embed");
}

TEST(Reduction, GradientsMatchDifferences) {
  for (const char* operation : {"SUM", "ASUM", "SUMSQ", "MEAN"}) {
    for (const char* axis : {"1", "2", "3"}) {
      check_in_every_layout({.type = "Reduction",
                             .parameters = {{"operation", operation}, {"axis", axis}},
                             .inputs = {without_zero({2, 8, 3, 2}, 1)}});
    }
  }
}

TEST(Mvn, GradientsMatchDifferences) {
  for (const char* variance : {"true", "false"}) {
    for (const char* across : {"true", "false"}) {
      check_in_every_layout({.type = "MVN",
                             .parameters = {{"normalize_variance", variance},
                                            {"across_channels", across},
                                            {"eps", "0.1"}},
                             .inputs = {random_tensor({2, 8, 3, 4}, 2)}});
    }
  }
}

TEST(LayerNorm, GradientsMatchDifferences) {
  check_in_every_layout(
      {.type = "LayerNorm",
       .inputs = {random_tensor({2, 16, 2, 3}, 3)},
       .weights = {random_tensor({16, 1, 1, 1}, 4), random_tensor({16, 1, 1, 1}, 5)}});
}

// Channels of whole and of divided vectors, more pixels than are summed in float.
TEST(LayerNorm, HasExactWeightGradientsOfManyPixels) {
  const Shape shape{3, 88, 9, 17};
  const int64_t pixels = shape.h * shape.w;
  const PlainTensor x = random_tensor(shape, 60), dy = random_tensor(shape, 61);
  std::vector<double> weight(88), bias(88);
  for (int64_t n = 0; n < shape.n; ++n) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      const auto at = [&](const PlainTensor& tensor, int64_t c) {
        return static_cast<double>(tensor.values[size_t((n * shape.c + c) * pixels + pixel)]);
      };
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < shape.c; ++c) mean += at(x, c) / 88;
      for (int64_t c = 0; c < shape.c; ++c) variance += std::pow(at(x, c) - mean, 2) / 88;
      for (int64_t c = 0; c < shape.c; ++c) {
        weight[size_t(c)] += at(dy, c) * (at(x, c) - mean) / std::sqrt(variance + 1e-5);
        bias[size_t(c)] += at(dy, c);
      }
    }
  }
  for (const LayerSetup& setup :
       in_every_layout({.type = "LayerNorm",
       .parameters = {{"eps", "1e-5"}},
       .inputs = {x},
       .weights = {random_tensor({88, 1, 1, 1}, 62), random_tensor({88, 1, 1, 1}, 63)}})) {
    LayerRun run(setup);
    run.forward();
    const std::vector<PlainTensor> gradients = run.backward_weights({dy});
    EXPECT_LE(relative_difference(gradients[0].values, weight), 5e-7) << layout_text(setup);
    EXPECT_LE(relative_difference(gradients[1].values, bias), 5e-7) << layout_text(setup);
  }
}

TEST(LrnWithinChannel, GradientsMatchDifferences) {
  check_in_every_layout({.type = "LRN",
                         .parameters = {{"norm_region", "WITHIN_CHANNEL"},
                                        {"local_size", "3"},
                                        {"alpha", "2"},
                                        {"beta", "0.6"}},
                         .inputs = {random_tensor({1, 8, 4, 3}, 6)}});
}

TEST(Reductions, HaveTheSameBitsOnAnyNumberOfThreads) {
  const PlainTensor image = random_tensor({4, 48, 17, 19}, 7);
  expect_same_bits_on_any_threads(
      {.type = "Reduction", .parameters = {{"axis", "2"}}, .inputs = {image}});
  expect_same_bits_on_any_threads({.type = "MVN", .inputs = {image}});
  expect_same_bits_on_any_threads(
      {.type = "LRN", .parameters = {{"norm_region", "WITHIN_CHANNEL"}}, .inputs = {image}});
  expect_same_bits_on_any_threads(
      {.type = "LayerNorm",
       .inputs = {image},
       .weights = {random_tensor({48, 1, 1, 1}, 8), random_tensor({48, 1, 1, 1}, 9)}});
}

TEST(InPlace, MvnGivesTheSameBits) {
  LayerSetup setup{.type = "MVN",
                   .inputs = {random_tensor({2, 8, 5, 3}, 1)},
                   .flags = TANDEM_WANTS_BACKWARD_DATA};
  const PlainTensor gradient = random_tensor({2, 8, 5, 3}, 2);
  LayerRun apart(setup);
  setup.flags |= TANDEM_RUNS_IN_PLACE;
  LayerRun together(setup);
  EXPECT_EQ(apart.forward()[0].values, together.forward()[0].values);
  EXPECT_EQ(apart.backward_data({gradient})[0].values,
            together.backward_data({gradient})[0].values);
}

TEST(Mvn, KeepsAConstantChannelAtZero) {
  LayerSetup setup{.type = "MVN", .inputs = {{{1, 1, 2, 2}, {3, 3, 3, 3}}}};
  LayerRun run(setup);
  EXPECT_THAT(run.forward()[0].values, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(run.backward_data({{{1, 1, 2, 2}, {1, 1, 1, 1}}})[0].values, ElementsAre(0, 0, 0, 0));
}

TEST(ArgMax, TakesTheLaterOfEqualValuesAndNanLast) {
  LayerSetup setup{.type = "ArgMax",
                   .parameters = {{"top_k", "4"}},
                   .inputs = {{{1, 4, 1, 1}, {2, NAN, 2, -INFINITY}}},
                   .flags = 0};
  EXPECT_THAT(LayerRun(setup).forward()[0].values, ElementsAre(2, 0, 3, 1));
}

TEST(Embed, AccumulatesWeightGradientsOnRequest) {
  LayerSetup setup{.type = "Embed",
                   .parameters = {{"num_output", "2"}, {"input_dim", "2"}},
                   .inputs = {{{3, 1, 1, 1}, {1, -1, 1}}},
                   .weights = {random_tensor({2, 2, 1, 1}, 1), random_tensor({2, 1, 1, 1}, 2)}};
  LayerRun run(setup);
  const std::vector<float> values = run.forward()[0].values;
  EXPECT_EQ(values[2], 0);
  EXPECT_EQ(values[3], 0);
  const std::vector<PlainTensor> start{{{2, 2, 1, 1}, {10, 20, 30, 40}}, {{2, 1, 1, 1}, {50, 60}}};
  const auto gradients = run.backward_weights({{{3, 2, 1, 1}, {1, 2, 3, 4, 5, 6}}}, start);
  EXPECT_THAT(gradients[0].values, ElementsAre(10, 20, 36, 48));
  EXPECT_THAT(gradients[1].values, ElementsAre(56, 68));
}

TEST(Embed, ReportsAnInvalidIndexOnACpu) {
  LayerSetup setup{.type = "Embed",
                   .parameters = {{"num_output", "2"}, {"input_dim", "3"}, {"bias_term", "false"}},
                   .inputs = {{{2, 1, 1, 1}, {1, 3}}},
                   .weights = {random_tensor({3, 2, 1, 1}, 1)}};
  const auto failure = [&] {
    try {
      (void)LayerRun(setup).forward();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(failure(), "Embed: index 3 is not below input_dim 3");
  setup.inputs[0].values = {0.5F, 1};
  EXPECT_EQ(failure(), "Embed: index 0.5 is not a whole number");
}

TEST(Reductions, RefuseUnsupportedParameters) {
  EXPECT_EQ(refused("Reduction", {2, 3, 4, 4}, {}),
            "Reduction: axis 0 is the batch, which is divided over the devices: only axes 1 to 3 "
            "are supported");
  EXPECT_THAT(refused("Reduction", {2, 3, 4, 4}, {{"operation", "MAX"}}),
              HasSubstr("operation is 'MAX'"));
  EXPECT_EQ(refused("ArgMax", {2, 3, 1, 1}, {{"top_k", "4"}}),
            "ArgMax: top_k 4 exceeds the 3 values");
  EXPECT_EQ(refused("LRN", {2, 3, 4, 4}, {{"norm_region", "WITHIN_CHANNEL"}, {"local_size", "2"}}),
            "LRN: local_size 2 is even, but needs a middle element: write 1 or 3");
  EXPECT_THAT(refused("LayerNorm", {2, 3, 4, 4}, {{"axis", "2"}}), HasSubstr("axis is '2'"));
  EXPECT_EQ(
      refused("Embed", {2, 3, 4, 4}, {{"num_output", "2"}, {"input_dim", "2"}}),
      "Embed: needs one index per row, or a sequence N x T of them, but its input is 2x3x4x4");
}

}  // namespace
}  // namespace tandem::test
