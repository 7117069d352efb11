// Sliced bindings (tandem_binding): the results of a layer's slices together equal those of the
// whole layer.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

constexpr int64_t rows = 3, inputs = 30, outputs = 20;
const std::vector<std::pair<int64_t, int64_t>> output_slices{{0, 7}, {7, 8}, {8, 20}};
const std::vector<std::pair<int64_t, int64_t>> input_slices{{0, 11}, {11, 30}};

LayerSetup whole_inner_product() {
  return {.type = "InnerProduct",
          .parameters = {{"num_output", std::to_string(outputs)}},
          .inputs = {random_tensor({rows, 5, 2, 3}, 1)},
          .weights = {random_tensor({outputs, 5, 2, 3}, 2), random_tensor({outputs, 1, 1, 1}, 3)}};
}
const PlainTensor gradient = random_tensor({rows, outputs, 1, 1}, 4);

LayerSetup slice_of(LayerSetup setup, std::pair<int64_t, int64_t> slice) {
  setup.slice_begin = slice.first;
  setup.slice_end = slice.second;
  return setup;
}

void expect_sums_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-5) << i;
}

TEST(SlicedOutputs, EqualTheirChannelsOfTheWhole) {
  const PlainTensor whole = LayerRun(whole_inner_product()).forward()[0];
  for (const auto& slice : output_slices) {
    LayerRun run(slice_of(whole_inner_product(), slice));
    expect_sums_near(run.forward()[0].values, channels_of(whole, slice.first, slice.second).values);
  }
}

TEST(SlicedOutputs, HaveInputGradientsThatSumToTheWhole) {
  LayerRun run(whole_inner_product());
  run.forward();
  const std::vector<float> whole = run.backward_data({gradient})[0].values;
  std::vector<float> sum(whole.size());
  for (const auto& slice : output_slices) {
    LayerRun part(slice_of(whole_inner_product(), slice));
    part.forward();
    const auto given =
        part.backward_data({channels_of(gradient, slice.first, slice.second)})[0].values;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += given[i];
  }
  expect_sums_near(sum, whole);
}

TEST(SlicedOutputs, HaveTheirRowsOfTheWeightGradients) {
  LayerRun run(whole_inner_product());
  run.forward();
  const std::vector<PlainTensor> whole = run.backward_weights({gradient});
  for (const auto& slice : output_slices) {
    for (const bool whole_outputs : {false, true}) {
      LayerSetup setup = slice_of(whole_inner_product(), slice);
      setup.whole_outputs = whole_outputs;
      LayerRun part(setup);
      part.forward();
      const auto given = part.backward_weights(
          {whole_outputs ? gradient : channels_of(gradient, slice.first, slice.second)});
      for (size_t i = 0; i < 2; ++i) {
        expect_sums_near(given[i].values,
                         first_axis_of(whole[i], slice.first, slice.second).values);
      }
    }
  }
}

TEST(SlicedOutputs, KeepTheOtherChannelsOfAWholeOutput) {
  const PlainTensor whole = LayerRun(whole_inner_product()).forward()[0];
  LayerSetup setup = slice_of(whole_inner_product(), {7, 15});
  setup.whole_outputs = true;
  setup.output_start = {whole.shape, std::vector<float>(whole.values.size(), 100)};
  const PlainTensor given = LayerRun(setup).forward()[0];
  expect_sums_near(channels_of(given, 7, 15).values, channels_of(whole, 7, 15).values);
  for (const float value : channels_of(given, 0, 7).values) EXPECT_EQ(value, 100);
  for (const float value : channels_of(given, 15, outputs).values) EXPECT_EQ(value, 100);
}

LayerSetup input_slice_of(LayerSetup setup, std::pair<int64_t, int64_t> slice) {
  setup.input_begin = slice.first;
  setup.input_end = slice.second;
  if (slice.first > 0) setup.flags |= TANDEM_ADD_TO_OUTPUT;
  return setup;
}

TEST(SlicedInputs, SumToTheWholeOutput) {
  PlainTensor sum;
  for (const auto& slice : input_slices) {
    LayerSetup setup = input_slice_of(whole_inner_product(), slice);
    setup.output_start = sum;
    sum = LayerRun(setup).forward()[0];
  }
  expect_sums_near(sum.values, LayerRun(whole_inner_product()).forward()[0].values);
}

TEST(SlicedInputs, HaveTheirElementsOfTheInputGradient) {
  LayerRun run(whole_inner_product());
  run.forward();
  PlainTensor whole = run.backward_data({gradient})[0];
  whole.shape = {rows, inputs, 1, 1};
  for (const auto& slice : input_slices) {
    LayerSetup setup = input_slice_of(whole_inner_product(), slice);
    setup.output_start = {{rows, outputs, 1, 1}, std::vector<float>(rows * outputs)};
    LayerRun part(setup);
    part.forward();
    expect_sums_near(part.backward_data({gradient})[0].values,
                     channels_of(whole, slice.first, slice.second).values);
  }
}

TEST(SlicedInputs, WriteTheirColumnsOfTheWeightGradientAndTheBiasOnce) {
  LayerRun run(whole_inner_product());
  run.forward();
  const std::vector<PlainTensor> whole = run.backward_weights({gradient});
  const std::vector<PlainTensor> zeros{{{outputs, 5, 2, 3}, std::vector<float>(outputs * inputs)},
                                       {{outputs, 1, 1, 1}, std::vector<float>(outputs)}};
  std::vector<PlainTensor> sum = zeros;
  for (const auto& slice : input_slices) {
    LayerSetup setup = input_slice_of(whole_inner_product(), slice);
    setup.output_start = {{rows, outputs, 1, 1}, std::vector<float>(rows * outputs)};
    LayerRun part(setup);
    part.forward();
    sum = part.backward_weights({gradient}, sum);
  }
  for (size_t i = 0; i < 2; ++i) expect_sums_near(sum[i].values, whole[i].values);
}

// The parameters that a type cannot do without.
using Parameters = std::vector<std::pair<std::string, std::string>>;
Parameters required_by(const std::string& type) {
  return type == "Clip" ? Parameters{{"min", "-0.5"}, {"max", "0.5"}} : Parameters{};
}

// All types with the trait and without weights, also those that do not use the sdk.
TEST(SlicedLayers, WithoutWeightsGiveTheSameBitsAsTheWhole) {
  int tested = 0;
  for (const std::string& type : layer_registry().layer_types()) {
    const tandem_layer_type& table = layer_registry().layer_type(type);
    if ((table.traits & TANDEM_SLICED_OUTPUTS) == 0 || type == "InnerProduct") continue;
    ++tested;
    for (const Shape& shape : {Shape{3, 21, 1, 1}, Shape{2, 9, 3, 3}}) {
      PlainTensor input = random_tensor(shape, 5);
      if (type == "Log") {
        for (float& value : input.values) value = std::abs(value) + 0.1F;
      }
      const PlainTensor error = random_tensor(shape, 6);
      const LayerSetup setup{.type = type,
                             .parameters = required_by(type),
                             .inputs = {input},
                             .flags = TANDEM_WANTS_BACKWARD_DATA};
      LayerRun whole(setup);
      const PlainTensor output = whole.forward()[0];
      const PlainTensor back = whole.backward_data({error})[0];
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 5}, {5, 6}, {6, shape.c}}) {
        LayerRun part(slice_of(setup, {begin, end}));
        EXPECT_EQ(part.forward()[0].values, channels_of(output, begin, end).values) << type;
        EXPECT_EQ(part.backward_data({channels_of(error, begin, end)})[0].values,
                  channels_of(back, begin, end).values)
            << type;
      }
    }
  }
  EXPECT_GE(tested, 12);
}

TEST(SavesNothing, IsATraitOnlyOfTypesWhoseKernelsSaveNothing) {
  for (const std::string& type : layer_registry().layer_types()) {
    if ((layer_registry().layer_type(type).traits & TANDEM_SAVES_NOTHING) == 0) continue;
    if ((layer_registry().layer_type(type).traits & TANDEM_SLICED_OUTPUTS) == 0) continue;
    const LayerSetup setup = type == "InnerProduct"
                                 ? whole_inner_product()
                                 : LayerSetup{.type = type,
                                              .parameters = required_by(type),
                                              .inputs = {random_tensor({2, 4, 3, 3}, 1)}};
    EXPECT_EQ(LayerRun(setup).report().saved_bytes, 0) << type;
  }
}

}  // namespace
}  // namespace tandem::test
