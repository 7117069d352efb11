// BatchNormScale: all passes compared with float64, with finite differences and with a BatchNorm
// and a Scale as two layers; a batch that is divided over devices; and bfloat16 and float16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/computable.h"
#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

constexpr size_t factors = 3, biases = 4;  // among the weights

LayerSetup batch_norm_scale(const PlainTensor& input) {
  const Shape channels{input.shape.c, 1, 1, 1};
  LayerSetup setup{.type = "BatchNormScale", .inputs = {input}};
  for (unsigned i = 0; i < 5; ++i) setup.weights.push_back(random_tensor(channels, 20 + i));
  for (float& variance : setup.weights[1].values) variance = 1 + std::abs(variance);
  setup.weights[2] = {{1, 1, 1, 1}, {2.5F}};
  return setup;
}

PlainTensor random_around(float offset, const Shape& shape, unsigned seed) {
  PlainTensor tensor = random_tensor(shape, seed);
  for (float& value : tensor.values) value += offset;
  return tensor;
}

// ---- in float64

struct Expected {
  std::vector<double> y, dx, dweight, dbias, mean, variance;  // the last two after the step
};

// Calls body(channel, index) for each element of a plain tensor.
template <class Body>
void for_elements(const Shape& shape, const Body& body) {
  const int64_t pixels = shape.h * shape.w;
  for (int64_t i = 0; i < element_count(shape); ++i) {
    body(static_cast<size_t>(i / pixels % shape.c), static_cast<size_t>(i));
  }
}

Expected in_float64(const LayerSetup& setup, const PlainTensor& gradient, bool kept, double eps,
                    double fraction = 0.999) {
  const PlainTensor& input = setup.inputs[0];
  const auto channels = static_cast<size_t>(input.shape.c);
  const auto count = static_cast<double>(input.values.size()) / static_cast<double>(channels);
  const auto weight = [&](size_t i, size_t c) { return double{setup.weights[i].values[c]}; };
  std::vector<double> mean(channels), variance(channels), sums(channels), products(channels);
  for_elements(input.shape, [&](size_t c, size_t i) { mean[c] += input.values[i] / count; });
  for_elements(input.shape, [&](size_t c, size_t i) {
    variance[c] += std::pow(input.values[i] - mean[c], 2) / count;
  });
  Expected result;
  result.y = result.dx = std::vector<double>(input.values.size());
  for (size_t c = 0; c < channels; ++c) {
    result.mean.push_back(kept ? weight(0, c) : fraction * weight(0, c) + mean[c]);
    result.variance.push_back(kept ? weight(1, c)
                                   : fraction * weight(1, c) + variance[c] * count / (count - 1));
    if (!kept) continue;
    mean[c] = weight(0, c) / weight(2, 0);
    variance[c] = weight(1, c) / weight(2, 0);
  }
  const auto normalized = [&](size_t c, size_t i) {
    return (input.values[i] - mean[c]) / std::sqrt(variance[c] + eps);
  };
  for_elements(input.shape, [&](size_t c, size_t i) {
    result.y[i] = weight(factors, c) * normalized(c, i) + weight(biases, c);
    sums[c] += gradient.values[i];
    products[c] += gradient.values[i] * normalized(c, i);
  });
  for_elements(input.shape, [&](size_t c, size_t i) {
    const double rest = kept ? 0 : sums[c] / count + normalized(c, i) * products[c] / count;
    result.dx[i] = (gradient.values[i] - rest) * weight(factors, c) / std::sqrt(variance[c] + eps);
  });
  result.dbias = sums;
  result.dweight = products;
  return result;
}

// The gradient before a fused ReLU, if the kernel applies the ReLU's gradient; else the same.
PlainTensor before_activation(const LayerSetup& setup, PlainTensor gradient, const Expected& of) {
  const tandem_kernel& kernel = layer_registry().kernel("BatchNormScale", kernel_device().kind());
  if ((kernel.fused_gradients >> setup.activation & 1U) == 0) return gradient;
  for (size_t i = 0; i < of.y.size(); ++i) gradient.values[i] *= of.y[i] > 0 ? 1.0F : 0.0F;
  return gradient;
}

struct Tolerance {
  double y = 2e-6, dx = 2e-6, sums = 2e-6;
};

void expect_float64(const LayerSetup& setup, const PlainTensor& gradient, const Expected& expected,
                    const Tolerance& most = {}) {
  LayerRun run(setup);
  const auto near = [&](const std::string& what, const std::vector<float>& actual,
                        const std::vector<double>& right, double tolerance) {
    const double error = relative_difference(actual, right);
    EXPECT_LE(error, tolerance) << what;
    if (setup.input_dtype == TANDEM_FLOAT32) record_error("BatchNormScale " + what, error);
  };
  std::vector<double> y = expected.y;
  for (double& value : y) {
    if (setup.activation == TANDEM_ACTIVATION_RELU) value = std::max(value, 0.0);
  }
  near("output", run.forward()[0].values, y, most.y);
  near("mean", run.weights_after()[0].values, expected.mean, 5e-7);
  near("variance", run.weights_after()[1].values, expected.variance, 2e-6);
  near("input_gradient", run.backward_data({gradient})[0].values, expected.dx, most.dx);
  const std::vector<PlainTensor> of_weights = run.backward_weights({gradient});
  near("weight_gradient", of_weights[factors].values, expected.dweight, most.sums);
  near("weight_gradient", of_weights[biases].values, expected.dbias, most.sums);
}

const std::vector<Shape> shapes{{3, 5, 5, 7},   {2, 8, 3, 5},   {3, 16, 9, 7},   {2, 24, 3, 3},
                                {2, 37, 2, 3},  {1, 8, 5, 6},   {6, 16, 1, 1},   {5, 13, 1, 1},
                                {2, 3, 11, 13}, {2, 3, 90, 91}, {5, 17, 23, 19}, {1301, 11, 1, 1},
                                {2, 12, 7, 7},  {4, 32, 33, 31}};

TEST(BatchNormScale, AgreesWithTheReferenceInEveryLayoutWithAndWithoutRelu) {
  for (const Shape& shape : shapes) {
    const PlainTensor gradient = random_tensor(shape, 2);
    for (const bool kept : {false, true}) {
      LayerSetup plain = batch_norm_scale(random_around(0.3F, shape, 1));
      plain.parameters = {{"use_global_stats", kept ? "true" : "false"}, {"eps", "0.001"}};
      for (const int32_t activation : {TANDEM_ACTIVATION_NONE, TANDEM_ACTIVATION_RELU}) {
        plain.activation = activation;
        Expected expected = in_float64(plain, gradient, kept, 0.001);
        expected = in_float64(plain, before_activation(plain, gradient, expected), kept, 0.001);
        for (const LayerSetup& setup : in_every_layout(plain)) {
          SCOPED_TRACE(to_string(shape) + " " + layout_text(setup) + (kept ? ", kept" : ""));
          expect_float64(setup, gradient, expected);
        }
      }
    }
  }
}

TEST(BatchNormScale, AgreesWithFloat64FarFromZero) {
  const Shape shape{3, 16, 5, 7};
  const PlainTensor gradient = random_tensor(shape, 2);
  for (const float offset : {1000.0F, -10000.0F}) {
    const LayerSetup plain = batch_norm_scale(random_around(offset, shape, 1));
    const Expected expected = in_float64(plain, gradient, false, 1e-5);
    for (const LayerSetup& setup : in_every_layout(plain)) {
      SCOPED_TRACE(layout_text(setup));
      expect_float64(setup, gradient, expected);
    }
  }
}

TEST(BatchNormScale, AgreesWithFloat64WhereTheFactorIsZero) {
  const Shape shape{3, 16, 5, 7};
  LayerSetup setup = batch_norm_scale(random_tensor(shape, 1));
  for (size_t c = 0; c < 16; c += 2) setup.weights[factors].values[c] = 0;
  const PlainTensor gradient = random_tensor(shape, 2);
  expect_float64(setup, gradient, in_float64(setup, gradient, false, 1e-5));
}

TEST(BatchNormScale, InSixteenBitsRoundsItsResultsOnly) {
  const tandem_kernel& kernel = layer_registry().kernel("BatchNormScale", kernel_device().kind());
  for (const int32_t dtype : {TANDEM_BFLOAT16, TANDEM_FLOAT16}) {
    if ((kernel.dtypes >> dtype & 1U) == 0 || !not_computable(dtype).empty()) continue;
    const double u = dtype == TANDEM_FLOAT16 ? 1.0 / 2048 : 1.0 / 256;
    for (const Shape& shape : {Shape{3, 16, 9, 7}, {2, 37, 2, 3}, {6, 16, 1, 1}, {2, 3, 11, 13}}) {
      LayerSetup plain = batch_norm_scale(rounded_to(dtype, random_around(0.3F, shape, 1)));
      const PlainTensor gradient = rounded_to(dtype, random_tensor(shape, 2));
      plain.input_dtype = plain.output_dtype = dtype;
      for (const int32_t activation : {TANDEM_ACTIVATION_NONE, TANDEM_ACTIVATION_RELU}) {
        plain.activation = activation;
        Expected expected = in_float64(plain, gradient, false, 1e-5);
        expected = in_float64(plain, before_activation(plain, gradient, expected), false, 1e-5);
        for (const LayerSetup& setup : in_every_layout(plain)) {
          SCOPED_TRACE(dtype_name(dtype) + (" " + to_string(shape)) + " " + layout_text(setup));
          expect_float64(setup, gradient, expected, {u, u, 2e-6});
        }
      }
    }
  }
}

TEST(BatchNormScale, MatchesFiniteDifferencesInEveryLayout) {
  for (const Shape& shape : {Shape{2, 8, 3, 2}, Shape{3, 5, 2, 2}, Shape{6, 3, 1, 1}}) {
    for (const char* kept : {"false", "true"}) {
      LayerSetup plain = batch_norm_scale(random_tensor(shape, 1));
      plain.parameters = {{"use_global_stats", kept}, {"eps", "0.01"}};
      for (const LayerSetup& setup : in_every_layout(plain)) {
        check_gradients(setup);
        LayerRun run(setup);
        (void)run.forward();
        const std::vector<PlainTensor> output_factors{random_tensor(shape, 99)};
        const std::vector<PlainTensor> actual = run.backward_weights(output_factors);
        for (const size_t i : {factors, biases}) {
          const auto expected =
              finite_differences(setup, output_factors, 1e-2,
                                 [i](LayerSetup& s) -> PlainTensor& { return s.weights[i]; });
          EXPECT_LE(relative_difference(actual[i].values, expected), 2e-3)
              << i << ", " << layout_text(setup);
        }
      }
    }
  }
}

// ---- two layers

TEST(BatchNormScale, GivesTheResultsOfTwoLayersUpToRounding) {
  for (const char* kept : {"false", "true"}) {
    for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
      for (const Shape& shape : {Shape{3, 16, 9, 7}, {2, 37, 2, 3}, {6, 16, 1, 1}}) {
        LayerSetup one = batch_norm_scale(random_around(2, shape, 1));
        one.parameters = {{"use_global_stats", kept}};
        one.phase = phase;
        LayerSetup norm{.type = "BatchNorm",
                        .parameters = one.parameters,
                        .inputs = one.inputs,
                        .weights = {one.weights[0], one.weights[1], one.weights[2]},
                        .phase = phase};
        LayerRun fused(one), first(norm);
        const PlainTensor normalized = first.forward()[0];
        LayerRun second({.type = "Scale",
                         .parameters = {{"bias_term", "true"}},
                         .inputs = {normalized},
                         .weights = {one.weights[factors], one.weights[biases]},
                         .phase = phase});
        EXPECT_LE(relative_difference(fused.forward()[0].values, second.forward()[0].values), 1e-6);
        for (size_t i = 0; i < 3; ++i) {
          EXPECT_LE(
              relative_difference(fused.weights_after()[i].values, first.weights_after()[i].values),
              1e-6);
        }
        if (phase == TANDEM_TEST) continue;
        const PlainTensor gradient = random_tensor(shape, 2);
        const auto of_factors = second.backward_weights({gradient});
        const auto input_gradient = first.backward_data(second.backward_data({gradient}));
        EXPECT_LE(relative_difference(fused.backward_data({gradient})[0].values,
                                      input_gradient[0].values),
                  2e-6);
        const auto weights = fused.backward_weights({gradient});
        for (const size_t i : {factors, biases}) {
          EXPECT_LE(relative_difference(weights[i].values, of_factors[i - factors].values), 2e-6);
        }
      }
    }
  }
}

TEST(BatchNormScale, TestsInPlaceWithTheSameBits) {
  LayerSetup setup = batch_norm_scale(random_tensor({2, 24, 5, 3}, 5));
  setup.phase = TANDEM_TEST;
  setup.flags = 0;
  setup.activation = TANDEM_ACTIVATION_RELU;
  for (LayerSetup apart : in_every_layout(setup)) {
    LayerSetup in_place = apart;
    in_place.flags = TANDEM_RUNS_IN_PLACE;
    EXPECT_EQ(LayerRun(in_place).forward()[0].values, LayerRun(apart).forward()[0].values);
  }
}

// ---- several devices and threads

TEST(BatchNormScale, DoesNotDependOnTheSplitOfTheBatch) {
  const Shape shape{7, 5, 6, 4};
  const LayerSetup whole = batch_norm_scale(random_around(100, shape, 1));
  const PlainTensor gradient = random_tensor(shape, 2);
  LayerRun one(whole);
  const PlainTensor output = one.forward()[0];
  const PlainTensor input_gradient = one.backward_data({gradient})[0];
  const std::vector<PlainTensor> weight_gradients = one.backward_weights({gradient});
  for (const std::vector<int64_t>& cuts :
       {std::vector<int64_t>{0, 4, 7}, {0, 3, 5, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}) {
    std::vector<std::unique_ptr<LayerRun>> runs;
    std::vector<PlainTensor> gradients;
    std::vector<std::vector<float>> moments, sums;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      LayerSetup rows = whole;
      rows.inputs = {first_axis_of(whole.inputs[0], cuts[i], cuts[i + 1])};
      rows.batch_begin = cuts[i];
      runs.push_back(std::make_unique<LayerRun>(rows));
      gradients.push_back(first_axis_of(gradient, cuts[i], cuts[i + 1]));
      moments.push_back(runs.back()->forward_statistics());
    }
    const auto without = [](std::vector<std::vector<float>> all, size_t own) {
      all.erase(all.begin() + static_cast<int64_t>(own));
      return all;
    };
    std::vector<float> outputs, input_gradients;
    const auto append = [](std::vector<float>& to, const PlainTensor& part) {
      to.insert(to.end(), part.values.begin(), part.values.end());
    };
    for (size_t i = 0; i < runs.size(); ++i) {
      append(outputs, runs[i]->forward(without(moments, i))[0]);
      sums.push_back(runs[i]->backward_statistics({gradients[i]}));
    }
    std::vector<float> of_weights[2] = {std::vector<float>(5), std::vector<float>(5)};
    for (size_t i = 0; i < runs.size(); ++i) {
      append(input_gradients, runs[i]->backward_data({gradients[i]}, without(sums, i))[0]);
      const auto part = runs[i]->backward_weights({gradients[i]}, {}, without(sums, i));
      for (const size_t k : {factors, biases}) {
        for (size_t c = 0; c < 5; ++c) of_weights[k - factors][c] += part[k].values[c];
      }
    }
    EXPECT_LE(relative_difference(outputs, output.values), 3e-7);
    EXPECT_LE(relative_difference(input_gradients, input_gradient.values), 1e-6);
    for (const size_t k : {factors, biases}) {
      EXPECT_LE(relative_difference(of_weights[k - factors], weight_gradients[k].values), 1e-6);
    }
  }
}

TEST(BatchNormScale, HasTheSameBitsOnAnyNumberOfThreads) {
  const Shape shape{8, 32, 33, 31};
  const PlainTensor gradient = random_tensor(shape, 4);
  for (const LayerSetup& layout : in_every_layout(batch_norm_scale(random_tensor(shape, 3)))) {
    std::vector<std::vector<float>> results;
    for (const int32_t threads : {1, 2, 3}) {
      LayerSetup one = layout;
      one.threads = threads;
      LayerRun run(one);
      results.push_back(run.forward()[0].values);
      const auto weights = run.backward_weights({gradient});
      for (const PlainTensor& part : {run.backward_data({gradient})[0], weights[3], weights[4]}) {
        results.back().insert(results.back().end(), part.values.begin(), part.values.end());
      }
    }
    EXPECT_EQ(results[0], results[1]) << layout_text(layout);
    EXPECT_EQ(results[0], results[2]) << layout_text(layout);
  }
}

TEST(BatchNormScale, PerDeviceNormalisesByTheDevicesRowsWithTheSameBits) {
  const Shape shape{3, 8, 5, 4};
  const PlainTensor gradient = random_tensor(shape, 7);
  for (const LayerSetup& layout : in_every_layout(batch_norm_scale(random_tensor(shape, 6)))) {
    LayerSetup own = layout;
    own.parameters = {{"per_device", "true"}};
    LayerRun shared(layout), alone(own);
    EXPECT_EQ(alone.forward()[0].values, shared.forward()[0].values);
    EXPECT_TRUE(alone.statistics().empty());
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(alone.weights_after()[i].values, shared.weights_after()[i].values);
    }
    EXPECT_EQ(alone.backward_data({gradient})[0].values,
              shared.backward_data({gradient})[0].values);
    const auto expected = shared.backward_weights({gradient});
    const auto actual = alone.backward_weights({gradient});
    for (const size_t i : {factors, biases}) EXPECT_EQ(actual[i].values, expected[i].values);
  }
}

// ---- single values

TEST(BatchNormScale, GivesTheBiasForAChannelOfOneValue) {
  LayerSetup setup = batch_norm_scale({{2, 2, 3, 3}, std::vector<float>(36, 7.1F)});
  const std::vector<float> y = LayerRun(setup).forward()[0].values;
  for_elements({2, 2, 3, 3},
               [&](size_t c, size_t i) { EXPECT_EQ(y[i], setup.weights[biases].values[c]); });
}

TEST(BatchNormScale, KeepsNan) {
  PlainTensor input = random_tensor({2, 2, 3, 3}, 8);
  input.values[3] = NAN;
  LayerSetup setup = batch_norm_scale(input);
  setup.activation = TANDEM_ACTIVATION_RELU;
  const std::vector<float> y = LayerRun(setup).forward()[0].values;
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_FALSE(std::isnan(y[9]));
}

}  // namespace
}  // namespace tandem::test
