// Fields of data layers of Caffe and its forks: each applies or is named.
#include <gmock/gmock.h>

#include "core/run/setup/images_text.h"
#include "core/run/setup/setup_data.h"
#include "tests/model/net_test.h"
#include "tests/support/message_of.h"

namespace tandem {
namespace {

using test::message_of;
using test::parse_definition;
using testing::AllOf;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

NetDefinition net_with(const std::string& type, const std::string& blocks) {
  return parse_definition("layer { name: 'd' type: '" + type + "' top: 'data' top: 'label' " +
                          blocks + " }");
}

std::map<std::string, std::string> parameters_of(const NetDefinition& net) {
  return image_parameters(net.transform(TANDEM_TRAIN).value());
}

TEST(DataFields, ImageDataStretchesToItsNewSize) {
  const NetDefinition whole =
      net_with("ImageData", "image_data_param { new_height: 48 new_width: 64 }");
  EXPECT_EQ(to_string(whole.input_shape()), "1x0x48x64");
  EXPECT_THAT(parameters_of(whole), UnorderedElementsAre(Pair("fit", "squash")));
  const NetDefinition cropped = net_with(
      "ImageData",
      "transform_param { crop_size: 32 } image_data_param { new_height: 48 new_width: 64 }");
  EXPECT_EQ(to_string(cropped.input_shape()), "1x0x32x32");
  EXPECT_THAT(parameters_of(cropped),
              UnorderedElementsAre(Pair("fit", "squash"), Pair("resize", "48"),
                                   Pair("resize_width", "64")));
  EXPECT_THAT(parameters_of(net_with("ImageData",
                                     "transform_param { crop_size: 32 } "
                                     "image_data_param { short_side: 40 }")),
              UnorderedElementsAre(Pair("resize", "40")));
  const NetDefinition gray =
      net_with("ImageData", "image_data_param { new_height: 8 new_width: 8 is_color: false }");
  EXPECT_EQ(to_string(gray.input_shape()), "1x1x8x8");
}

TEST(DataFields, TheResizingOfSsdAndACropWithTwoSidesApply) {
  const auto resized = [](const std::string& more) {
    return net_with("Data",
                    "transform_param { resize_param { height: 30 width: 40 " + more + " } }");
  };
  EXPECT_EQ(to_string(resized("").input_shape()), "1x0x30x40");
  EXPECT_THAT(parameters_of(resized("resize_mode: WARP")),
              UnorderedElementsAre(Pair("fit", "squash")));
  EXPECT_THAT(parameters_of(resized("resize_mode: FIT_LARGE_SIZE_AND_PAD")),
              UnorderedElementsAre(Pair("fit", "pad")));
  EXPECT_THAT(parameters_of(resized("resize_mode: FIT_SMALL_SIZE")),
              UnorderedElementsAre(Pair("resize", "30")));
  EXPECT_EQ(to_string(net_with("Data", "transform_param { crop_h: 20 crop_w: 30 }").input_shape()),
            "1x0x20x30");
}

TEST(DataFields, WhatMakesNoSenseIsRefused) {
  const auto refusal = [](const std::string& type, const std::string& blocks) {
    return message_of([&] { check_data_layers(net_with(type, blocks)); });
  };
  EXPECT_THAT(refusal("ImageData", "image_data_param { new_height: 48 }"),
              HasSubstr("new_height is 48 and new_width 0; give both"));
  EXPECT_THAT(refusal("ImageData",
                      "transform_param { crop_size: 60 } "
                      "image_data_param { new_height: 48 new_width: 64 }"),
              HasSubstr("its images become 48x64, less than the crop of 60x60"));
  EXPECT_THAT(refusal("Data", "transform_param { mean_file: 'm' mean_value: 1 }"),
              HasSubstr("mean_file and mean_value; give one of them"));
  EXPECT_THAT(refusal("Data", "transform_param { resize_param { height: 9 } }"),
              HasSubstr("resize_param has no width"));
  EXPECT_THAT(refusal("Data",
                      "transform_param { resize_param { height: 9 width: 9 "
                      "resize_mode: STRETCH } }"),
              HasSubstr("FIT_SMALL_SIZE"));
  EXPECT_THAT(
      refusal("Data", "transform_param { resize_param { height: 9 width: 9 pad_value: 3 } }"),
      HasSubstr("pad_value of resize_param is not supported"));
  EXPECT_THAT(refusal("Data", "transform_param { scael: 2 }"), HasSubstr("did you mean 'scale'"));
}

TEST(DataFields, ATestingLayerThatPreparesImagesInAnotherWayIsNamed) {
  const auto line_of = [](const std::string& testing) {
    return other_preparation_text(parse_definition(
        "layer { name: 'a' type: 'Data' top: 'data' include { phase: TRAIN } transform_param { "
        "scale: 0.5 mirror: true } } layer { name: 'b' type: 'Data' top: 'data' include { phase: "
        "TEST } transform_param { " +
        testing + " } }"));
  };
  EXPECT_EQ(line_of("scale: 0.5"), "");
  EXPECT_THAT(line_of("scale: 1"), AllOf(HasSubstr("(scale 1)"), HasSubstr("(scale 0.5)")));
  EXPECT_THAT(line_of("scale: 0.5 mean_value: 3"), HasSubstr("mean 3"));
  EXPECT_THAT(line_of("scale: 0.5 crop_size: 8"), HasSubstr("crop 8"));
}

}  // namespace
}  // namespace tandem
