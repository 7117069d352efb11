#include "core/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/numbers/shape.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

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

TEST(Error, LeavesOutTheMiddleOfALongMessage) {
  const std::string message =
      error("net '{}' is wrong (a.prototxt:7)", std::string(30000, 'x')).what();
  EXPECT_LT(message.size(), max_message_bytes + 10);
  EXPECT_THAT(message, AllOf(StartsWith("net 'xxx"), HasSubstr("xxx [...] xxx"),
                             EndsWith("xxx' is wrong (a.prototxt:7)")));
}

TEST(Error, LeavesOutWholeCharacters) {
  for (size_t before = 0; before < 3; ++before) {
    std::string text(before, 'x');
    while (text.size() < 2 * max_message_bytes) text += "\xe2\x82\xac";
    EXPECT_TRUE(is_utf8(shortened_message(text))) << before;
  }
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
