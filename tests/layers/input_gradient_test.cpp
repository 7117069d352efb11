// InnerProduct's input gradients by panels of weights, compared with sums in float64.
#include <gmock/gmock.h>

#include "tests/layers/convolution_sums.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

LayerSetup inner_product(int64_t rows, int64_t inputs, int64_t outputs) {
  return {
      .type = "InnerProduct",
      .parameters = {{"num_output", std::to_string(outputs)}},
      .inputs = {random_tensor({rows, inputs, 1, 1}, 1)},
      .weights = {random_tensor({outputs, inputs, 1, 1}, 2), random_tensor({outputs, 1, 1, 1}, 3)}};
}

bool takes_panels(const LayerSetup& setup) {
  return LayerRun(setup).algorithm().find("panels of weights") != std::string::npos;
}

class InputGradient : public testing::Test {
 protected:
  void SetUp() override {
    if (!takes_panels(inner_product(32, 1024, 64))) {
      GTEST_SKIP() << "with this instruction set, oneDNN's product is used";
    }
  }
};

// Of the outputs and inputs in the ranges.
std::vector<double> sums_of(const LayerSetup& setup, const PlainTensor& dy,
                            std::pair<int64_t, int64_t> outputs,
                            std::pair<int64_t, int64_t> inputs) {
  const PlainTensor& weights = setup.weights[0];
  std::vector<double> dx;
  for (int64_t row = 0; row < dy.shape.n; ++row) {
    for (int64_t i = inputs.first; i < inputs.second; ++i) {
      double sum = 0;
      for (int64_t o = outputs.first; o < outputs.second; ++o) {
        sum += static_cast<double>(dy.values[size_t(row * dy.shape.c + o)]) *
               static_cast<double>(weights.values[size_t(o * weights.shape.c + i)]);
      }
      dx.push_back(sum);
    }
  }
  return dx;
}

void expect_gradient_as_sums(LayerRun& run, const PlainTensor& dy,
                             const std::vector<double>& sums) {
  expect_as_sum(algorithm_of("backward data", run.algorithm()), "input_gradient",
                run.backward_data({dy})[0].values, sums, 2e-6);
}

TEST_F(InputGradient, AgreesWithSumsInFloat64) {
  struct Case {
    int64_t rows, inputs, outputs;
  };
  for (const Case& c : {Case{32, 1024, 64}, Case{33, 1024, 127}, Case{131, 1536, 128},
                        Case{256, 1024, 129}, Case{50, 2048, 300}}) {
    SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.inputs << " to " << c.outputs);
    const LayerSetup setup = inner_product(c.rows, c.inputs, c.outputs);
    LayerRun run(setup);
    EXPECT_THAT(run.algorithm(), testing::HasSubstr("panels of weights"));
    const PlainTensor dy = random_tensor(run.forward()[0].shape, 4);
    expect_gradient_as_sums(run, dy, sums_of(setup, dy, {0, c.outputs}, {0, c.inputs}));
  }
}

TEST_F(InputGradient, SupportsSlicesOfAWholeOutput) {
  LayerSetup setup = inner_product(34, 1024, 150);
  const PlainTensor dy = random_tensor({34, 150, 1, 1}, 4);
  setup.whole_outputs = true;
  setup.slice_begin = 7;
  setup.slice_end = 91;
  LayerRun run(setup);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("panels of weights"));
  run.forward();
  expect_gradient_as_sums(run, dy, sums_of(setup, dy, {7, 91}, {0, 1024}));
}

TEST_F(InputGradient, SupportsSlicesOfTheInput) {
  LayerSetup setup = inner_product(34, 2048, 70);
  const PlainTensor dy = random_tensor({34, 70, 1, 1}, 4);
  setup.input_begin = 13;
  setup.input_end = 1053;
  setup.flags |= TANDEM_ADD_TO_OUTPUT;
  setup.output_start = {dy.shape, std::vector<float>(dy.values.size())};
  LayerRun run(setup);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("panels of weights"));
  run.forward();
  expect_gradient_as_sums(run, dy, sums_of(setup, dy, {0, 70}, {13, 1053}));
}

TEST_F(InputGradient, IsNotUsedWhereOneDnnCopiesTheWeightsOrTheirRowsShareNoPlaces) {
  EXPECT_FALSE(takes_panels(inner_product(31, 1024, 64)));
  EXPECT_FALSE(takes_panels(inner_product(257, 1024, 64)));
  EXPECT_FALSE(takes_panels(inner_product(64, 1032, 64)));
  EXPECT_FALSE(takes_panels(inner_product(64, 512, 64)));
  EXPECT_FALSE(takes_panels(inner_product(64, 1024, 63)));
}

TEST_F(InputGradient, TakesLittleMemoryForEachThread) {
  LayerSetup setup = inner_product(256, 1024, 64);
  const auto scratch_of = [&](int32_t threads) {
    setup.threads = threads;
    return LayerRun(setup).report().scratch_bytes;
  };
  EXPECT_LE(scratch_of(32) - scratch_of(16), 16 << 20);
}

TEST_F(InputGradient, HasTheSameBitsForEveryNumberOfThreads) {
  LayerSetup setup = inner_product(40, 1536, 200);
  const PlainTensor dy = random_tensor({40, 200, 1, 1}, 4);
  const auto gradient_of = [&](int32_t threads) {
    setup.threads = threads;
    LayerRun run(setup);
    run.forward();
    return run.backward_data({dy})[0].values;
  };
  const std::vector<float> alone = gradient_of(1);
  for (const int32_t threads : {2, 3, 7}) EXPECT_EQ(gradient_of(threads), alone) << threads;
}

}  // namespace
}  // namespace tandem::test
