// Layers that join, cut, repeat and rename axes: Concat, Slice, Tile, Crop, Flatten, Reshape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Parameters = std::vector<std::pair<std::string, std::string>>;

std::string refused(const std::string& type, const std::vector<Shape>& inputs,
                    const Parameters& parameters, uint32_t outputs = 1) {
  LayerSetup setup{.type = type, .parameters = parameters, .output_count = outputs};
  for (const Shape& shape : inputs) setup.inputs.push_back(random_tensor(shape, 1));
  return refusal_of(setup);
}

Shape shape_of(const std::string& type, const std::vector<Shape>& inputs,
               const Parameters& parameters) {
  LayerSetup setup{.type = type, .parameters = parameters};
  for (const Shape& shape : inputs) setup.inputs.push_back(random_tensor(shape, 1));
  return LayerRun(setup).output_shapes()[0];
}

std::vector<int32_t> offered(const LayerSetup& setup) {
  std::vector<int32_t> layouts;
  for (const tandem_layout_option& option : LayerRun(setup).layouts()) {
    EXPECT_EQ(option.input, option.output);
    layouts.push_back(option.input);
  }
  return layouts;
}

// A copy is exact, but the vectors have twelve digits.
constexpr double as_written = 1e-11;

TEST(Concat, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("concat", "Concat", as_written);
}
TEST(Slice, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("slice", "Slice", as_written);
}
TEST(Tile, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("tile", "Tile", 1e-6);
}
TEST(Permute, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("permute", "Permute", as_written);
}
TEST(Pad, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("pad", "Pad", 1e-6);
}
TEST(Upsample, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("upsample", "Upsample", 2e-6);
}
TEST(MatMul, AgreesWithTheReference) {
  expect_reference("matmul", "MatMul", 2e-6);
}
TEST(Softmax, OfAnotherAxisAgreesWithTheReference) {
  expect_reference("softmax_axes", "Softmax", 2e-6);
}
TEST(Pooling, OfTheImageAloneAgreesWithTheReference) {
  expect_reference("average_pooling_inside", "Pooling", 2e-6);
}
TEST(Crop, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("crop", "Crop", as_written);
}
TEST(Flatten, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("flatten", "Flatten", as_written);
}
TEST(Reshape, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("reshape", "Reshape", as_written);
}

TEST(ShapeLayers, GradientsMatchDifferences) {
  const auto check = [](LayerSetup setup) {
    for (const LayerSetup& one : in_every_layout(setup)) check_gradients(one);
  };
  const PlainTensor x = random_tensor({2, 16, 3, 2}, 1), y = random_tensor({2, 8, 3, 2}, 2);
  check({.type = "Concat", .inputs = {x, y, y}});
  check({.type = "Slice", .parameters = {{"slice_point", "8"}}, .inputs = {x}, .output_count = 2});
  check({.type = "Slice", .parameters = {{"axis", "2"}, {"step", "-2"}}, .inputs = {x}});
  check({.type = "Slice",
         .parameters = {{"start", "1"}, {"step", "5"}, {"count", "2"}},
         .inputs = {x}});
  check({.type = "Tile", .parameters = {{"tiles", "3"}}, .inputs = {y}});
  check({.type = "Crop",
         .parameters = {{"offset", "1"}},
         .inputs = {x, random_tensor({2, 3, 2, 1}, 3)}});
  check({.type = "Pad",
         .parameters = {{"top", "2"}, {"right", "1"}, {"mode", "REFLECT"}},
         .inputs = {y}});
  check({.type = "Pad",
         .parameters = {{"left", "2"}, {"bottom", "1"}, {"value", "3"}},
         .inputs = {y}});
  check({.type = "Upsample", .parameters = {{"scale_h", "1.4"}}, .inputs = {y}});
  check({.type = "Upsample",
         .parameters = {{"mode", "BILINEAR"}, {"scale_w", "1.5"}},
         .inputs = {y}});
  check_gradients({.type = "MatMul",
                   .parameters = {{"transpose_b", "true"}},
                   .inputs = {y, random_tensor({2, 8, 4, 2}, 4)}});
  check({.type = "Permute",
         .parameters = {{"order", "0"}, {"order", "3"}, {"order", "1"}, {"order", "2"}},
         .inputs = {y}});
  check({.type = "Flatten", .inputs = {y}});
  check({.type = "Reshape",
         .parameters = {{"dim", "0"}, {"dim", "-1"}, {"dim", "4"}},
         .inputs = {y}});
}

TEST(Concat, OffersBlockedLayoutsOnlyForWholeBlocksOnACpu) {
  const auto layouts = [](int64_t a, int64_t b) {
    return offered({.type = "Concat",
                    .inputs = {random_tensor({1, a, 2, 2}, 1), random_tensor({1, b, 2, 2}, 1)}});
  };
  EXPECT_THAT(layouts(16, 32),
              ElementsAre(TANDEM_NCHW, TANDEM_NHWC, TANDEM_NCHW8C, TANDEM_NCHW16C));
  EXPECT_THAT(layouts(24, 8), ElementsAre(TANDEM_NCHW, TANDEM_NHWC, TANDEM_NCHW8C));
  EXPECT_THAT(layouts(16, 4), ElementsAre(TANDEM_NCHW, TANDEM_NHWC));
}

TEST(Concat, IsTheSameOnSeveralThreads) {
  LayerSetup setup{.type = "Concat",
                   .inputs = {random_tensor({4, 48, 40, 9}, 1), random_tensor({4, 32, 40, 9}, 2)}};
  for (LayerSetup& one : in_every_layout(setup)) {
    one.threads = 1;
    const std::vector<float> alone = LayerRun(one).forward()[0].values;
    one.threads = 3;
    EXPECT_EQ(LayerRun(one).forward()[0].values, alone) << layout_text(one);
  }
}

TEST(Concat, RefusesInputsThatCannotBeJoined) {
  EXPECT_EQ(refused("Concat", {{2, 3, 4, 4}, {2, 3, 5, 4}}, {}),
            "Concat: input 1 is 2x3x5x4, but input 0 2x3x4x4: they may differ in axis 1 only");
  EXPECT_EQ(refused("Concat", {{2, 3, 4, 4}}, {{"axis", "1"}, {"concat_dim", "1"}}),
            "Concat: write either axis or concat_dim, its former name, not both");
  EXPECT_EQ(refused("Concat", {{2, 3, 4, 4}}, {{"axis", "0"}}),
            "Concat: axis 0 is the batch, which is divided over the devices: only axes 1 to 3 are "
            "supported");
  EXPECT_EQ(refused("Concat", {{2, 3, 1, 1}}, {{"axis", "-1"}}),
            "Concat: axis -1 counts from the last axis, which is not defined for the shape "
            "2x3x1x1: count from the first axis, which is 0");
  EXPECT_EQ(to_string(shape_of("Concat", {{2, 3, 4, 5}, {2, 3, 4, 2}}, {{"axis", "-1"}})),
            "2x3x4x7");
}

TEST(Slice, RefusesCutsThatDoNotFit) {
  EXPECT_EQ(refused("Slice", {{2, 5, 4, 4}}, {}, 2),
            "Slice: an extent of 5 cannot be divided into 2 equal parts: write slice_point");
  EXPECT_EQ(refused("Slice", {{2, 5, 4, 4}}, {{"slice_point", "2"}}, 3),
            "Slice: 1 slice_point make 2 parts, but 3 outputs are named");
  EXPECT_EQ(
      refused("Slice", {{2, 5, 4, 4}}, {{"slice_point", "5"}}, 2),
      "Slice: slice_point must increase, from above 0 to below the extent 5, but part 1 would "
      "go from 5 to 5");
}

TEST(MatMul, RefusesMatricesThatDoNotFit) {
  EXPECT_THAT(refused("MatMul", {{2, 3, 4, 5}, {2, 3, 4, 5}}, {}),
              HasSubstr("cannot be multiplied"));
  EXPECT_THAT(refused("MatMul", {{2, 3, 4, 5}, {2, 1, 5, 4}}, {}),
              HasSubstr("cannot be multiplied"));
}
TEST(Slice, RefusesStepsThatLeaveTheAxis) {
  EXPECT_EQ(refused("Slice", {{2, 5, 4, 4}}, {{"start", "3"}, {"step", "-2"}, {"count", "3"}}, 1),
            "Slice: start 3, step -2 and count 3 lead outside the extent 5");
  EXPECT_EQ(refused("Slice", {{2, 5, 4, 4}}, {{"start", "5"}}, 1),
            "Slice: start 5, step 1 and count 0 lead outside the extent 5");
  EXPECT_EQ(refused("Slice", {{2, 5, 4, 4}}, {{"step", "0"}}, 1), "Slice: step must not be 0");
  EXPECT_EQ(refused("Slice", {{2, 5, 4, 4}}, {{"step", "2"}}, 2),
            "Slice: start, step and count are for one output, without slice_point");
}

TEST(Pad, RefusesAMirrorThatIsTooLarge) {
  EXPECT_THAT(refused("Pad", {{2, 3, 4, 4}}, {{"top", "4"}, {"mode", "REFLECT"}}),
              HasSubstr("REFLECT pads by less than"));
}
TEST(Permute, RefusesAnOrderThatIsNone) {
  const Parameters twice{{"order", "0"}, {"order", "1"}, {"order", "1"}, {"order", "2"}};
  EXPECT_THAT(refused("Permute", {{2, 3, 4, 4}}, twice), HasSubstr("order must begin with 0"));
  const Parameters batch{{"order", "1"}, {"order", "0"}, {"order", "2"}, {"order", "3"}};
  EXPECT_THAT(refused("Permute", {{2, 3, 4, 4}}, batch), HasSubstr("order must begin with 0"));
  EXPECT_THAT(refused("Permute", {{2, 3, 4, 4}}, {{"dim", "5"}, {"order", "0"}, {"order", "1"}}),
              HasSubstr("dim must be"));
}
TEST(Tile, RequiresTheNumberOfTiles) {
  EXPECT_THAT(refused("Tile", {{2, 3, 4, 4}}, {{"tiles", "0"}}), HasSubstr("tiles is '0'"));
}

TEST(Crop, RefusesABoxOutsideItsInput) {
  EXPECT_EQ(refused("Crop", {{2, 3, 6, 6}, {2, 3, 4, 5}}, {{"offset", "2"}}),
            "Crop: axis 3 has 6, but 5 from offset 2 are needed (input 0 is 2x3x6x6, input 1 "
            "2x3x4x5)");
  EXPECT_EQ(refused("Crop", {{2, 3, 6, 6}, {2, 3, 4, 5}},
                    {{"offset", "1"}, {"offset", "1"}, {"offset", "1"}}),
            "Crop: 3 offsets, but 2 axes are cropped from axis 2 on: write one for all, or one "
            "for each");
}

TEST(Flatten, RefusesAnEndBeforeItsBegin) {
  EXPECT_EQ(refused("Flatten", {{2, 3, 4, 4}}, {{"axis", "3"}, {"end_axis", "2"}}),
            "Flatten: end_axis 2 comes before axis 3");
  EXPECT_THAT(refused("Flatten", {{2, 3, 4, 4}}, {{"axis", "0"}}), HasSubstr("is the batch"));
}

TEST(Reshape, RefusesExtentsThatDoNotFit) {
  const auto reshape = [](const Parameters& parameters) {
    return refused("Reshape", {{2, 6, 4, 5}}, parameters);
  };
  EXPECT_EQ(reshape({{"dim", "0"}, {"dim", "7"}}),
            "Reshape: the input has 120 elements per row (2x6x4x5), the result would be 2x7x1x1");
  EXPECT_EQ(reshape({{"dim", "0"}, {"dim", "7"}, {"dim", "-1"}}),
            "Reshape: the input's 240 elements (2x6x4x5) are not divisible by 14, so dim -1 has no "
            "value");
  EXPECT_EQ(reshape({{"dim", "0"}, {"dim", "-1"}, {"dim", "-1"}}),
            "Reshape: dim -1 can be written only once");
  EXPECT_EQ(reshape({{"dim", "2"}, {"dim", "120"}}),
            "Reshape: dim 2 for the batch axis, which is divided over the devices: begin with "
            "dim: 0, or write axis: 1");
  EXPECT_EQ(reshape({{"axis", "1"}, {"num_axes", "1"}, {"dim", "2"}, {"dim", "3"}}),
            "Reshape: the result would have 5 axes, 2x2x3x4x5, but only N, C, H, W are supported");
  EXPECT_EQ(reshape({{"axis", "3"}, {"num_axes", "2"}, {"dim", "5"}}),
            "Reshape: axis 3 and the 2 axes from it on exceed N, C, H, W");
}

TEST(InPlace, FlattenAndReshapeKeepTheMemory) {
  for (const auto& [type, parameters] : {std::pair<std::string, Parameters>{"Flatten", {}},
                                         {"Reshape", {{"dim", "0"}, {"dim", "-1"}}}}) {
    const LayerSetup setup{.type = type,
                           .parameters = parameters,
                           .inputs = {random_tensor({2, 8, 3, 3}, 1)},
                           .flags = TANDEM_WANTS_BACKWARD_DATA | TANDEM_RUNS_IN_PLACE};
    LayerRun run(setup);
    EXPECT_EQ(run.forward()[0].values, setup.inputs[0].values);
    const PlainTensor gradient = random_tensor({2, 72, 1, 1}, 2);
    EXPECT_EQ(run.backward_data({gradient})[0].values, gradient.values);
  }
}

}  // namespace
}  // namespace tandem::test
