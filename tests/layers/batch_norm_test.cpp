// BatchNorm: formulas compared with float64, statistics of a batch that is divided over devices,
// running statistics, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

std::vector<PlainTensor> states(int64_t channels) {
  return {{{channels, 1, 1, 1}, std::vector<float>(size_t(channels), 0)},
          {{channels, 1, 1, 1}, std::vector<float>(size_t(channels), 0)},
          {{1, 1, 1, 1}, {0}}};
}

LayerSetup batch_norm(const PlainTensor& input) {
  return {.type = "BatchNorm",
          .inputs = {input},
          .weights = states(input.shape.c),
          .flags = TANDEM_WANTS_BACKWARD_DATA};
}

PlainTensor shifted(PlainTensor tensor, float offset) {
  for (float& value : tensor.values) value += offset;
  return tensor;
}

// Rows [begin, end).
PlainTensor rows_of(const PlainTensor& whole, int64_t begin, int64_t end) {
  Shape shape = whole.shape;
  const int64_t row = element_count(shape) / shape.n;
  shape.n = end - begin;
  return {shape, {whole.values.begin() + begin * row, whole.values.begin() + end * row}};
}

TEST(BatchNorm, AgreesWithTheReferenceInEveryLayoutAndInPlace) {
  for (const ReferenceCase& reference : read_reference("batch_norm")) {
    LayerSetup plain = batch_norm(reference.plain("input0"));
    plain.parameters = reference.parameters;
    plain.weights = reference.all("weight");
    for (LayerSetup setup : in_every_layout(plain)) {
      for (const uint32_t in_place : {0U, uint32_t{TANDEM_RUNS_IN_PLACE}}) {
        SCOPED_TRACE(reference.name + ", " + layout_text(setup) + (in_place ? ", in place" : ""));
        setup.flags = TANDEM_WANTS_BACKWARD_DATA | in_place;
        LayerRun run(setup);
        const auto near = [&](const PlainTensor& actual, const std::string& name, double most) {
          const double error =
              relative_difference(actual.values, reference.tensors.at(name).values);
          record_error("BatchNorm " + name.substr(0, name.size() - 1), error);
          EXPECT_LE(error, most) << name;
        };
        near(run.forward()[0], "output0", 2e-6);
        const std::vector<PlainTensor> after = run.weights_after();
        for (size_t i = 0; i < 3; ++i) near(after[i], "state" + std::to_string(i), 5e-7);
        near(run.backward_data(reference.all("output_gradient"))[0], "input_gradient0", 2e-6);
      }
    }
  }
}

TEST(BatchNorm, MatchesFiniteDifferencesInEveryLayout) {
  for (const Shape& shape : {Shape{2, 8, 3, 2}, Shape{3, 5, 2, 2}, Shape{6, 3, 1, 1}}) {
    for (const char* kept : {"false", "true"}) {
      LayerSetup plain = batch_norm(random_tensor(shape, 1));
      plain.parameters = {{"use_global_stats", kept}, {"eps", "0.01"}};
      plain.weights[1].values.assign(plain.weights[1].values.size(), 2);
      plain.weights[2].values = {1.5F};
      for (const LayerSetup& setup : in_every_layout(plain)) check_gradients(setup);
    }
  }
}

// The rows of a batch on several devices, with statistics merged as the host merges them.
struct DividedBatch {
  explicit DividedBatch(const LayerSetup& whole, const std::vector<int64_t>& cuts,
                        const PlainTensor& gradient) {
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      LayerSetup rows = whole;
      rows.inputs = {rows_of(whole.inputs[0], cuts[i], cuts[i + 1])};
      runs.push_back(std::make_unique<LayerRun>(rows));
      gradients.push_back(rows_of(gradient, cuts[i], cuts[i + 1]));
    }
    std::vector<std::vector<float>> own;
    for (const auto& run : runs) own.push_back(run->forward_statistics());
    for (size_t i = 0; i < runs.size(); ++i) {
      // On the host, every device gets the result of the first one. Here each merges the statistics
      // of all others.
      std::vector<std::vector<float>> others = own;
      others.erase(others.begin() + static_cast<int64_t>(i));
      append(output, runs[i]->forward(others)[0]);
    }
    std::vector<std::vector<float>> sums;
    for (size_t i = 0; i < runs.size(); ++i) {
      sums.push_back(runs[i]->backward_statistics({gradients[i]}));
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      std::vector<std::vector<float>> others = sums;
      others.erase(others.begin() + static_cast<int64_t>(i));
      append(input_gradient, runs[i]->backward_data({gradients[i]}, others)[0]);
    }
  }
  static void append(std::vector<float>& to, const PlainTensor& part) {
    to.insert(to.end(), part.values.begin(), part.values.end());
  }
  std::vector<std::unique_ptr<LayerRun>> runs;
  std::vector<PlainTensor> gradients;
  std::vector<float> output, input_gradient;
};

TEST(BatchNorm, DoesNotDependOnTheSplitOfTheBatch) {
  for (const float offset : {0.0F, 1000.0F}) {
    const LayerSetup whole = batch_norm(shifted(random_tensor({7, 5, 6, 4}, 1), offset));
    const PlainTensor gradient = random_tensor({7, 5, 6, 4}, 2);
    LayerRun one(whole);
    const std::vector<float> output = one.forward()[0].values;
    const std::vector<float> input_gradient = one.backward_data({gradient})[0].values;
    for (const std::vector<int64_t>& cuts :
         {std::vector<int64_t>{0, 4, 7}, {0, 3, 5, 7}, {0, 2, 4, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}) {
      const DividedBatch batch(whole, cuts, gradient);
      EXPECT_LE(relative_difference(batch.output, output), 3e-7) << offset;
      EXPECT_LE(relative_difference(batch.input_gradient, input_gradient), 1e-6) << offset;
    }
  }
}

TEST(BatchNorm, HasTheSameBitsOnAnyNumberOfThreads) {
  LayerSetup setup = batch_norm(random_tensor({8, 32, 33, 31}, 3));
  const PlainTensor gradient = random_tensor({8, 32, 33, 31}, 4);
  for (const LayerSetup& layout : in_every_layout(setup)) {
    std::vector<std::vector<float>> results;
    for (const int32_t threads : {1, 2, 3}) {
      LayerSetup one = layout;
      one.threads = threads;
      LayerRun run(one);
      results.push_back(run.forward()[0].values);
      const std::vector<float> back = run.backward_data({gradient})[0].values;
      results.back().insert(results.back().end(), back.begin(), back.end());
    }
    EXPECT_EQ(results[0], results[1]) << layout_text(layout);
    EXPECT_EQ(results[0], results[2]) << layout_text(layout);
  }
}

TEST(BatchNorm, TestsWithTheRunningStatisticsOfTraining) {
  LayerSetup setup = batch_norm(random_tensor({2, 3, 4, 4}, 5));
  setup.weights[0].values = {2, 4, 6};
  setup.weights[1].values = {8, 2, 32};
  setup.weights[2].values = {2};
  setup.phase = TANDEM_TEST;
  setup.flags = 0;
  LayerRun run(setup);
  const std::vector<float> y = run.forward()[0].values;
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i / 16 % 3;
    const double mean = setup.weights[0].values[c] / 2, variance = setup.weights[1].values[c] / 2;
    const double expected = (double{setup.inputs[0].values[i]} - mean) / std::sqrt(variance + 1e-5);
    EXPECT_NEAR(y[i], expected, 1e-6 * (1 + std::abs(expected)));
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(run.weights_after()[i].values, setup.weights[i].values);
}

TEST(BatchNorm, KeepsTheRunningStatisticsWhenItTestsWithThoseOfTheBatch) {
  LayerSetup setup = batch_norm(random_tensor({2, 3, 4, 4}, 5));
  setup.parameters = {{"use_global_stats", "false"}};
  setup.phase = TANDEM_TEST;
  LayerRun run(setup);
  LayerSetup training = setup;
  training.phase = TANDEM_TRAIN;
  EXPECT_EQ(run.forward()[0].values, LayerRun(training).forward()[0].values);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(run.weights_after()[i].values, setup.weights[i].values);
}

TEST(BatchNorm, PerDeviceNormalisesByTheDevicesRowsWithTheSameBits) {
  for (const LayerSetup& layout : in_every_layout(batch_norm(random_tensor({3, 8, 5, 4}, 6)))) {
    const PlainTensor gradient = random_tensor({3, 8, 5, 4}, 7);
    LayerSetup own = layout;
    own.parameters = {{"per_device", "true"}};
    LayerRun shared(layout), alone(own);
    EXPECT_EQ(alone.forward()[0].values, shared.forward()[0].values);
    EXPECT_TRUE(alone.statistics().empty());
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(alone.weights_after()[i].values, shared.weights_after()[i].values);
    }
    EXPECT_EQ(alone.backward_data({gradient})[0].values,
              shared.backward_data({gradient})[0].values);
  }
}

TEST(BatchNorm, GivesZeroForAChannelOfOneValue) {
  LayerSetup setup = batch_norm({{2, 2, 3, 3}, std::vector<float>(36, 7.1F)});
  EXPECT_THAT(LayerRun(setup).forward()[0].values, testing::Each(0.0F));
}

TEST(BatchNorm, KeepsNan) {
  PlainTensor input = random_tensor({2, 2, 3, 3}, 8);
  input.values[3] = NAN;
  const std::vector<float> y = LayerRun(batch_norm(input)).forward()[0].values;
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_FALSE(std::isnan(y[9]));
}

// From such a value the sums of squares would be large, and the variance a small difference.
TEST(BatchNorm, FindsTheVarianceOfAChannelWhoseFirstValueIsAnOutlier) {
  constexpr int64_t values = 64 * 112 * 112;
  PlainTensor input{{64, 1, 112, 112}, std::vector<float>(values, 0)};
  input.values[0] = 1.7F;
  const double first = static_cast<double>(input.values[0]), mean = first / values;
  const double variance = mean * (first - mean);
  LayerRun run(batch_norm(input));
  const float actual = run.forward()[0].values[0];
  const double expected = (first - mean) / std::sqrt(variance + 1e-5);
  EXPECT_NEAR(actual, expected, 1e-5 * expected);
}

TEST(BatchNorm, DeclaresStatisticsOnlyIfItNeedsTheWholeBatch) {
  const auto floats = [](const std::vector<std::pair<std::string, std::string>>& parameters,
                         int32_t phase) {
    LayerSetup setup = batch_norm(random_tensor({2, 3, 4, 4}, 5));
    setup.parameters = parameters;
    setup.phase = phase;
    return LayerRun(setup).report().statistics;
  };
  EXPECT_GT(floats({}, TANDEM_TRAIN), 0);
  EXPECT_EQ(floats({}, TANDEM_TEST), 0);
  EXPECT_EQ(floats({{"use_global_stats", "true"}}, TANDEM_TRAIN), 0);
  EXPECT_EQ(floats({{"per_device", "true"}}, TANDEM_TRAIN), 0);
}

TEST(BatchNorm, RefusesConstantsOutOfRange) {
  LayerSetup setup = batch_norm(random_tensor({2, 3, 4, 4}, 5));
  setup.parameters = {{"moving_average_fraction", "1.5"}};
  EXPECT_THAT(refusal_of(setup), testing::HasSubstr("moving_average_fraction is '1.5'"));
  setup.parameters = {{"eps", "-1"}};
  EXPECT_THAT(refusal_of(setup), testing::HasSubstr("eps is '-1'"));
}

}  // namespace
}  // namespace tandem::test
