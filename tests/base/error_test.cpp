#include "core/base/error.h"

#include <gtest/gtest.h>

#include "core/base/shape.h"

namespace tandem {
namespace {

TEST(Location, PrintsFileLineAndColumnAsFarAsTheyAreKnown) {
  EXPECT_EQ(to_string(Location{"a.prototxt", 23, 5}), "a.prototxt:23:5");
  EXPECT_EQ(to_string(Location{"a.prototxt", 23, 0}), "a.prototxt:23");
  EXPECT_EQ(to_string(Location{"a.prototxt", 0, 0}), "a.prototxt");
  EXPECT_EQ(to_string(Location{}), "");
}

TEST(Error, CarriesItsFormattedMessage) {
  EXPECT_STREQ(error("batch {} is smaller than the {} devices", 2, 4).what(),
               "batch 2 is smaller than the 4 devices");
}

TEST(Shape, PrintsAsNumbersJoinedByX) {
  EXPECT_EQ(to_string(Shape{128, 3, 227, 226}), "128x3x227x226");
}

TEST(Shape, CountsElementsBeyond32Bits) {
  EXPECT_EQ(element_count(Shape{65536, 65536, 2, 1}), int64_t{1} << 33);
}

TEST(Shape, DiffersIfAnyAxisDiffers) {
  const Shape shape{1, 2, 3, 4};
  EXPECT_TRUE(equal(shape, {1, 2, 3, 4}));
  EXPECT_FALSE(equal(shape, {2, 2, 3, 4}));
  EXPECT_FALSE(equal(shape, {1, 1, 3, 4}));
  EXPECT_FALSE(equal(shape, {1, 2, 4, 4}));
  EXPECT_FALSE(equal(shape, {1, 2, 3, 3}));
}

TEST(Layout, HasANameForEveryValueOfTheAbi) {
  EXPECT_EQ(layout_name(TANDEM_NCHW), "NCHW");
  EXPECT_EQ(layout_name(TANDEM_NHWC), "NHWC");
  EXPECT_EQ(layout_name(TANDEM_NCHW8C), "NCHW8c");
  EXPECT_EQ(layout_name(TANDEM_NCHW16C), "NCHW16c");
  EXPECT_EQ(layout_name(77), "layout 77");
}

}  // namespace
}  // namespace tandem
