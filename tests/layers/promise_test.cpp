// What layers promise beyond their formulas: random masks that depend only on the position,
// in-place memory, accumulation, and the same bits in every run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/random.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

PlainTensor ones(const Shape& shape) {
  return {shape, std::vector<float>(static_cast<size_t>(element_count(shape)), 1)};
}

LayerSetup dropout(const Shape& shape, const char* ratio = "0.3") {
  return {.type = "Dropout",
          .parameters = {{"dropout_ratio", ratio}},
          .inputs = {ones(shape)},
          .flags = TANDEM_WANTS_BACKWARD_DATA};
}

std::vector<float> forward(const LayerSetup& setup) {
  return LayerRun(setup).forward()[0].values;
}

TEST(Dropout, DropsTheSameElementsInEveryLayout) {
  const LayerSetup plain = dropout({3, 16, 5, 7});
  const std::vector<LayerSetup> setups = in_every_layout(plain);
  EXPECT_EQ(setups.size(), kernels_run_on_a_cpu() ? 4U : 2U);
  for (const LayerSetup& setup : setups) {
    EXPECT_EQ(forward(setup), forward(plain)) << layout_text(setup);
  }
}

TEST(Dropout, DropsTheSameElementsForEverySplitOfTheBatch) {
  const std::vector<float> whole = forward(dropout({5, 3, 3, 3}));
  std::vector<float> parts;
  for (const auto& [begin, rows] : {std::pair<int64_t, int64_t>{0, 2}, {2, 3}}) {
    LayerSetup part = dropout({rows, 3, 3, 3});
    part.batch_begin = begin;
    const std::vector<float> values = forward(part);
    parts.insert(parts.end(), values.begin(), values.end());
  }
  EXPECT_EQ(parts, whole);
}

TEST(Dropout, PerImageDropsAWholeRowOrNothingOfIt) {
  LayerSetup setup = dropout({40, 16, 5, 7});
  setup.parameters.emplace_back("per_image", "true");
  const std::vector<float> values = forward(setup);
  size_t kept = 0;
  for (uint32_t row = 0; row < 40; ++row) {
    const tandem_random4 block =
        tandem_random_block(setup.step.seed, setup.step.step, setup.layer_index, row, 0);
    const float expected = tandem_uniform(block.value[0]) >= 0.3F ? 1 / (1 - 0.3F) : 0;
    kept += expected != 0 ? 1 : 0;
    for (size_t i = 0; i < 16 * 5 * 7; ++i) ASSERT_EQ(values[row * 16 * 5 * 7 + i], expected);
  }
  EXPECT_GT(kept, 0U);
  EXPECT_LT(kept, 40U);
  for (const LayerSetup& other : in_every_layout(setup)) EXPECT_EQ(forward(other), values);
  LayerSetup part = setup;
  part.inputs = {ones({3, 16, 5, 7})};
  part.batch_begin = 37;
  const std::vector<float> last = forward(part);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), values.end() - 3 * 16 * 5 * 7));
}

TEST(Dropout, DropsOtherElementsInAnotherStepLayerOrSeed) {
  const LayerSetup first = dropout({2, 64, 1, 1});
  LayerSetup step = first, layer = first, seed = first;
  ++step.step.step;
  ++layer.layer_index;
  ++seed.step.seed;
  for (const LayerSetup& other : {step, layer, seed}) EXPECT_NE(forward(other), forward(first));
}

TEST(Dropout, DrawsTheDocumentedRandomBlocks) {
  const LayerSetup setup = dropout({2, 7, 1, 3});
  const std::vector<float> values = forward(setup);
  for (uint32_t row = 0; row < 2; ++row) {
    for (uint32_t element = 0; element < 21; ++element) {
      const tandem_random4 block = tandem_random_block(setup.step.seed, setup.step.step,
                                                       setup.layer_index, row, element / 4);
      const bool kept = tandem_uniform(block.value[element % 4]) >= 0.3F;
      EXPECT_EQ(values[row * 21 + element], kept ? 1 / (1 - 0.3F) : 0);
    }
  }
}

TEST(Dropout, KeepsTheGivenFraction) {
  const std::vector<float> values = forward(dropout({50, 1000, 1, 1}));
  const auto kept = std::count_if(values.begin(), values.end(), [](float v) { return v != 0; });
  // Five standard deviations of 50000 draws: 512.
  EXPECT_NEAR(static_cast<double>(kept), 0.7 * 50000, 512);
}

TEST(Dropout, DoesNothingInTesting) {
  LayerSetup setup = dropout({2, 8, 3, 3});
  setup.inputs = {random_tensor({2, 8, 3, 3}, 1)};
  setup.phase = TANDEM_TEST;
  EXPECT_EQ(forward(setup), setup.inputs[0].values);
  setup.flags |= TANDEM_RUNS_IN_PLACE;
  EXPECT_EQ(forward(setup), setup.inputs[0].values);
}

TEST(InPlace, ReluAndDropoutGiveTheSameBits) {
  for (const char* type : {"ReLU", "Dropout"}) {
    const Shape shape{2, 8, 3, 3};
    const PlainTensor gradient = random_tensor(shape, 2);
    LayerSetup setup{
        .type = type, .inputs = {random_tensor(shape, 1)}, .flags = TANDEM_WANTS_BACKWARD_DATA};
    LayerRun apart(setup);
    setup.flags |= TANDEM_RUNS_IN_PLACE;
    LayerRun together(setup);
    EXPECT_EQ(apart.forward()[0].values, together.forward()[0].values) << type;
    EXPECT_EQ(apart.backward_data({gradient})[0].values,
              together.backward_data({gradient})[0].values)
        << type;
  }
}

TEST(Relu, KeepsNanAndMapsMinusInfinityToZero) {
  const LayerSetup setup{.type = "ReLU", .inputs = {{{1, 3, 1, 1}, {NAN, -INFINITY, INFINITY}}}};
  const std::vector<float> values = forward(setup);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[2], INFINITY);
}

LayerSetup convolution() {
  return {.type = "Convolution",
          .parameters = {{"num_output", "16"}, {"kernel_size", "3"}, {"pad", "1"}},
          .inputs = {random_tensor({4, 16, 9, 9}, 1)},
          .weights = {random_tensor({16, 16, 3, 3}, 2), random_tensor({16, 1, 1, 1}, 3)}};
}
LayerSetup inner_product() {
  return {.type = "InnerProduct",
          .parameters = {{"num_output", "40"}},
          .inputs = {random_tensor({6, 8, 3, 3}, 4)},
          .weights = {random_tensor({40, 8, 3, 3}, 5), random_tensor({40, 1, 1, 1}, 6)}};
}

TEST(WeightGradients, AreAccumulatedOnRequest) {
  for (const LayerSetup& plain : {convolution(), inner_product()}) {
    for (const LayerSetup& setup : in_every_layout(plain)) {
      SCOPED_TRACE(setup.type + " " + layout_text(setup));
      LayerRun run(setup);
      const std::vector<PlainTensor> factors{random_tensor(run.output_shapes()[0], 7)};
      const std::vector<PlainTensor> fresh = run.backward_weights(factors);
      const std::vector<PlainTensor> start{random_tensor(fresh[0].shape, 8, 10),
                                           random_tensor(fresh[1].shape, 9, 10)};
      const std::vector<PlainTensor> added = run.backward_weights(factors, start);
      for (size_t i = 0; i < fresh.size(); ++i) {
        std::vector<float> expected;
        for (size_t k = 0; k < fresh[i].values.size(); ++k) {
          expected.push_back(start[i].values[k] + fresh[i].values[k]);
        }
        EXPECT_LE(relative_difference(added[i].values, expected), 1e-6) << i;
      }
    }
  }
}

TEST(Bits, AreTheSameWhenALayerIsPreparedAgain) {
  for (const LayerSetup& plain : {convolution(), inner_product()}) {
    for (const LayerSetup& setup : in_every_layout(plain)) {
      SCOPED_TRACE(setup.type + " " + layout_text(setup));
      LayerRun first(setup), second(setup);
      const std::vector<PlainTensor> factors{random_tensor(first.output_shapes()[0], 7)};
      EXPECT_EQ(first.forward()[0].values, second.forward()[0].values);
      EXPECT_EQ(first.backward_data(factors)[0].values, second.backward_data(factors)[0].values);
      EXPECT_EQ(first.backward_weights(factors)[0].values,
                second.backward_weights(factors)[0].values);
      EXPECT_EQ(first.forward()[0].values, first.forward()[0].values);
    }
  }
}

// On CPUs without AVX2 there are only forward kernels, and the other passes are products of plain
// matrices.
bool has_blocked_backward_kernels() {
  LayerSetup setup{.type = "Convolution",
                   .parameters = {{"num_output", "8"}, {"kernel_size", "1"}},
                   .inputs = {random_tensor({1, 8, 2, 2}, 1)},
                   .weights = {random_tensor({8, 8, 1, 1}, 2), random_tensor({8, 1, 1, 1}, 3)}};
  setup.input_layout = setup.output_layout = TANDEM_NCHW8C;
  return LayerRun(setup).algorithm().find("gemm") == std::string::npos;
}

TEST(Convolution, PrefersABlockedLayoutIfTheGroupsAllowItOnACpu) {
  uint32_t flags = 0;
  const auto best = [&](int64_t channels, const char* outputs, const char* group) {
    LayerSetup setup{.type = "Convolution",
                     .parameters = {{"num_output", outputs},
                                    {"kernel_size", "1"},
                                    {"group", group},
                                    {"bias_term", "false"}},
                     .inputs = {random_tensor({1, channels, 2, 2}, 1)}};
    const int64_t groups = group[0] - '0';
    setup.weights = {random_tensor({std::stoll(outputs), channels / groups, 1, 1}, 2)};
    setup.flags = flags;
    return LayerRun(setup).layouts().front();
  };
  const auto blocked = [](int32_t l) { return l == TANDEM_NCHW8C || l == TANDEM_NCHW16C; };
  for (const uint32_t passes : {0U, LayerSetup{}.flags}) {
    if (passes != 0 && !has_blocked_backward_kernels()) continue;
    flags = passes;
    EXPECT_TRUE(blocked(best(32, "32", "2").input));
    EXPECT_TRUE(blocked(best(32, "32", "2").output));
    EXPECT_EQ(best(3, "32", "1").input, TANDEM_NCHW);
    EXPECT_TRUE(blocked(best(3, "32", "1").output));
    EXPECT_EQ(best(24, "24", "6").input, TANDEM_NHWC);
    EXPECT_EQ(best(13, "5", "1").input, TANDEM_NHWC);
  }
}

TEST(Convolution, PrefersNoLayoutWithReferenceKernelsOnACpu) {
  for (const char* group : {"1", "2", "16"}) {
    const int64_t groups = std::stoll(group);
    const LayerSetup setup{
        .type = "Convolution",
        .parameters = {{"num_output", "16"}, {"kernel_size", "3"}, {"group", group}},
        .inputs = {random_tensor({2, 16, 5, 5}, 1)},
        .weights = {random_tensor({16, 16 / groups, 3, 3}, 2), random_tensor({16, 1, 1, 1}, 3)}};
    EXPECT_THAT(LayerRun(in_every_layout(setup).front()).algorithm(),
                testing::Not(testing::HasSubstr("ref")))
        << group;
  }
}

// Extents for which some oneDNN has kernels of some passes for plain images only.
TEST(Convolution, HasNoReferenceKernelInTheBestLayoutOnACpu) {
  struct Extents {
    int64_t channels, image;
    const char *kernel, *pad, *stride, *dilation;
    int64_t group;
  };
  for (const Extents& e : {Extents{512, 2, "3", "1", "1", "1", 1},
                           {512, 2, "3", "1", "2", "1", 1},
                           {64, 20, "7", "12", "2", "4", 1},
                           {64, 13, "5", "4", "1", "2", 64},
                           {16, 4, "9", "4", "1", "1", 16},
                           {64, 10, "1", "0", "2", "2", 4}}) {
    SCOPED_TRACE(testing::Message()
                 << e.channels << " channels, kernel " << e.kernel << ", stride " << e.stride
                 << ", dilation " << e.dilation << ", group " << e.group);
    LayerSetup plain{.type = "Convolution",
                     .parameters = {{"num_output", std::to_string(e.channels)},
                                    {"kernel_size", e.kernel},
                                    {"pad", e.pad},
                                    {"stride", e.stride},
                                    {"dilation", e.dilation},
                                    {"group", std::to_string(e.group)},
                                    {"algorithm", "DIRECT"}},
                     .inputs = {random_tensor({2, e.channels, e.image, e.image}, 1)}};
    const int64_t side = std::stoll(e.kernel);
    plain.weights = {random_tensor({e.channels, e.channels / e.group, side, side}, 2),
                     random_tensor({e.channels, 1, 1, 1}, 3)};
    LayerRun best_run(in_every_layout(plain).front()), plain_run(plain);
    EXPECT_THAT(best_run.algorithm(), testing::Not(testing::HasSubstr("ref:any")));
    const PlainTensor y = best_run.forward()[0], gradient = random_tensor(y.shape, 4);
    const auto expect_near = [](const PlainTensor& actual, const PlainTensor& expected) {
      EXPECT_LE(relative_difference(actual.values, expected.values), 2e-6);
    };
    expect_near(y, plain_run.forward()[0]);
    expect_near(best_run.backward_data({gradient})[0], plain_run.backward_data({gradient})[0]);
    const std::vector<PlainTensor> actual = best_run.backward_weights({gradient}),
                                   expected = plain_run.backward_weights({gradient}),
                                   twice = best_run.backward_weights({gradient}, actual);
    for (size_t i = 0; i < 2; ++i) {
      expect_near(actual[i], expected[i]);
      for (size_t k = 0; k < actual[i].values.size(); ++k) {
        EXPECT_NEAR(twice[i].values[k], 2 * actual[i].values[k], 1e-3);
      }
    }
  }
}

TEST(Convolution, AndPoolingSupportOneByOneImagesBesideBlockedOnes) {
  const LayerSetup plain{
      .type = "Convolution",
      .parameters = {{"num_output", "16"}, {"kernel_size", "3"}},
      .inputs = {random_tensor({2, 16, 3, 3}, 1)},
      .weights = {random_tensor({16, 16, 3, 3}, 2), random_tensor({16, 1, 1, 1}, 3)}};
  const LayerSetup blocked = in_every_layout(plain).front();
  EXPECT_THAT(LayerRun(blocked).algorithm(), testing::Not(testing::HasSubstr("ref")));
  EXPECT_LE(relative_difference(forward(blocked), forward(plain)), 1e-6);
}

TEST(SoftmaxWithLoss, HasTheExactLossOfARowWithATinyProbability) {
  const LayerSetup setup{.type = "SoftmaxWithLoss",
                         .inputs = {{{1, 2, 1, 1}, {0, 1000}}, {{1, 1, 1, 1}, {0}}}};
  EXPECT_FLOAT_EQ(forward(setup)[0], 1000);
}

TEST(SoftmaxWithLoss, GivesProbabilitiesAsASecondOutput) {
  LayerSetup setup{.type = "SoftmaxWithLoss",
                   .inputs = {random_tensor({3, 4, 1, 1}, 1), {{3, 1, 1, 1}, {0, -1, 3}}},
                   .output_count = 2,
                   .normaliser = 2};
  const LayerSetup softmax{.type = "Softmax", .inputs = {setup.inputs[0]}};
  for (const uint32_t flags : {uint32_t{TANDEM_WANTS_BACKWARD_DATA}, 0U}) {
    setup.flags = flags;
    const std::vector<PlainTensor> outputs = LayerRun(setup).forward();
    EXPECT_LE(relative_difference(outputs[1].values, forward(softmax)), 1e-6);
  }
}

TEST(SoftmaxWithLoss, IsZeroAndNotNanWhenNoRowCounts) {
  const LayerSetup setup{.type = "SoftmaxWithLoss",
                         .inputs = {random_tensor({2, 3, 1, 1}, 1), {{2, 1, 1, 1}, {-1, -1}}},
                         .normaliser = 0};
  LayerRun run(setup);
  EXPECT_EQ(run.forward()[0].values[0], 0);
  EXPECT_THAT(run.backward_data({{{1, 1, 1, 1}, {1}}})[0].values, testing::Each(0.0F));
}

TEST(Accuracy, CountsTiesAndNanAsWrong) {
  const LayerSetup setup{
      .type = "Accuracy",
      .inputs = {{{4, 2, 1, 1}, {1, 1, NAN, NAN, 2, NAN, 2, 1}}, {{4, 1, 1, 1}, {0, 0, 0, 0}}},
      .flags = 0,
      .normaliser = 4};
  EXPECT_FLOAT_EQ(forward(setup)[0], 0.25F);
}

TEST(Pooling, RoundsDownOnRequest) {
  LayerSetup setup{.type = "Pooling",
                   .parameters = {{"kernel_size", "3"}, {"stride", "2"}},
                   .inputs = {random_tensor({1, 2, 6, 8}, 1)}};
  EXPECT_EQ(to_string(LayerRun(setup).output_shapes()[0]), "1x2x3x4");
  setup.parameters.emplace_back("round_mode", "FLOOR");
  EXPECT_EQ(to_string(LayerRun(setup).output_shapes()[0]), "1x2x2x3");
}

TEST(Pooling, PassesANanOnToEveryWindowThatContainsIt) {
  for (const char* size : {"1", "2", "3"}) {  // of the stride; the last one leaves pixels out
    const LayerSetup plain{.type = "Pooling",
                           .parameters = {{"kernel_size", "2"}, {"stride", size}, {"pad", "1"}},
                           .inputs = {random_tensor({2, 16, 7, 5}, 1)}};
    for (LayerSetup setup : in_every_layout(plain)) {
      SCOPED_TRACE(setup.parameters[1].second + " " + layout_text(setup));
      std::vector<float>& x = setup.inputs[0].values;
      for (const size_t at : {size_t{0}, size_t{37}, x.size() / 2, x.size() - 1}) {
        const float number = x[at];
        x[at] = 1000;  // the maximum of every window that contains it
        const std::vector<float> highest = forward(setup);
        x[at] = NAN;
        const std::vector<float> with_nan = forward(setup);
        x[at] = number;
        for (size_t i = 0; i < highest.size(); ++i) {
          EXPECT_EQ(std::isnan(with_nan[i]), highest[i] == 1000) << at << ", output " << i;
        }
      }
    }
  }
}

TEST(Weights, AreDeclaredWithTheirFillersAndFans) {
  LayerSetup setup = convolution();
  setup.parameters.emplace_back("weight_filler", "xavier");
  const std::vector<tandem_weight> weights = LayerRun(setup).declared_weights();
  EXPECT_STREQ(weights[0].filler, "weight_filler");
  EXPECT_EQ(weights[0].fan_in, 16 * 9);
  EXPECT_EQ(weights[0].fan_out, 16 * 9);
  EXPECT_EQ(weights[1].filler, nullptr);
  EXPECT_EQ(weights[1].initial, 0);
}

}  // namespace
}  // namespace tandem::test
