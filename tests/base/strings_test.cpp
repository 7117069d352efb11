#include "core/base/text/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace tandem {
namespace {

using testing::ElementsAre;

TEST(NaturalOrder, PutsTwoBeforeTenAndOtherwiseComparesBytes) {
  std::vector<std::string> names{"img10b", "img10a", "img2", "Img3", "img", "10", "2", "img2x"};
  std::sort(names.begin(), names.end(), natural_less);
  EXPECT_THAT(names, ElementsAre("2", "10", "Img3", "img", "img2", "img2x", "img10a", "img10b"));
}

TEST(NaturalOrder, IsTotalOverNumbersWithLeadingZeros) {
  EXPECT_TRUE(natural_less("a01", "a1"));
  EXPECT_FALSE(natural_less("a1", "a01"));
  EXPECT_TRUE(natural_less("a01", "a2"));
  EXPECT_TRUE(natural_less("a1b", "a01c"));
  EXPECT_FALSE(natural_less("a1", "a1"));
}

TEST(NaturalOrder, ComparesNumbersLongerThanAnyInteger) {
  EXPECT_TRUE(natural_less("99999999999999999999998", "99999999999999999999999"));
  EXPECT_TRUE(natural_less("9", "10000000000000000000000"));
}

TEST(NaturalOrder, ComparesBytesAboveAsciiAsUnsigned) {
  EXPECT_TRUE(natural_less("z", "\xc3\xa9"));
}

TEST(DidYouMean, NamesTheNearestWordWhateverItsCase) {
  const std::vector<std::string> known{"Convolution", "Pooling", "ReLU"};
  EXPECT_EQ(did_you_mean("pooling", known), " (did you mean 'Pooling'?)");
  EXPECT_EQ(did_you_mean("Convoltion", known), " (did you mean 'Convolution'?)");
  EXPECT_EQ(did_you_mean("Relu6", known), " (did you mean 'ReLU'?)");
}

TEST(DidYouMean, FindsTheWordOfAnAbbreviation) {
  EXPECT_EQ(did_you_mean("conv", {"ReLU", "Convolution"}), " (did you mean 'Convolution'?)");
}

TEST(DidYouMean, IsEmptyIfNothingIsNear) {
  EXPECT_EQ(did_you_mean("Transformer", {"Convolution", "ReLU"}), "");
  EXPECT_EQ(did_you_mean("LR", {"ELU"}), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

TEST(DidYouMean, DoesNotCompareNamesThatNobodyTypes) {
  const std::string name(1'000'000, 'x');  // comparing two takes hours
  EXPECT_EQ(did_you_mean(name, {name + "y"}), "");
  EXPECT_EQ(did_you_mean("Relu6", {name, "ReLU"}), " (did you mean 'ReLU'?)");
}

TEST(HumanBytes, UsesBinaryUnitsAndAtMostOneDecimal) {
  EXPECT_EQ(human_bytes(17), "17 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(512 * 1024), "512 KiB");
  EXPECT_EQ(human_bytes(9771050598), "9.1 GiB");
  EXPECT_EQ(human_bytes(1024 * 1024 - 1), "1 MiB");
  EXPECT_EQ(human_bytes(-2048), "-2 KiB");
}

TEST(HumanSeconds, PicksTheUnitThatKeepsTheNumberAboveOne) {
  EXPECT_EQ(human_seconds(1.2), "1.2 s");
  EXPECT_EQ(human_seconds(0.0351), "35.1 ms");
  EXPECT_EQ(human_seconds(12e-6), "12 us");
  EXPECT_EQ(human_seconds(5e-9), "5 ns");
  EXPECT_EQ(human_seconds(0.999999), "1 s");
  EXPECT_EQ(human_seconds(0), "0 s");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a::b:", ':'), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ':'), ElementsAre(""));
}

TEST(ParseInteger, ReadsTheWholeTextOrNothing) {
  int64_t value = 42;
  for (const char* wrong : {"", "12x", " 12", "1.0", "+", "--1", "+-1", "9223372036854775808"}) {
    EXPECT_FALSE(parse_integer(wrong, &value)) << wrong;
    EXPECT_EQ(value, 42) << wrong;
  }
  EXPECT_TRUE(parse_integer("-9223372036854775808", &value));
  EXPECT_EQ(value, std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(parse_integer("+7", &value));
  EXPECT_EQ(value, 7);
}

TEST(ParseNumber, ReadsTheWholeTextOrNothing) {
  double value = 42;
  for (const char* wrong : {"", "1,5", "1.5x", " 1", "e3", "0x10", "1e999"}) {
    EXPECT_FALSE(parse_number(wrong, &value)) << wrong;
    EXPECT_EQ(value, 42) << wrong;
  }
  EXPECT_TRUE(parse_number("1e-3", &value));
  EXPECT_EQ(value, 1e-3);
  EXPECT_TRUE(parse_number(".5", &value));
  EXPECT_EQ(value, 0.5);
  EXPECT_TRUE(parse_number("-2", &value));
  EXPECT_EQ(value, -2);
}

TEST(EscapeXml, EscapesMarkup) {
  EXPECT_EQ(escape_xml("a<b & \"c\">\xC3\xA4"), "a&lt;b &amp; &quot;c&quot;&gt;\xC3\xA4");
}

// The name of a file may be in Latin-1.
TEST(EscapeXml, ReplacesBytesThatAreNoUtf8) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(escape_xml("caf\xE9.jpg"), "caf" + replacement + ".jpg");
  EXPECT_EQ(escape_xml("\xC3\xA9\xC3"), "\xC3\xA9" + replacement);
  EXPECT_EQ(escape_xml("\xED\xA0\x80"), replacement + replacement + replacement);
  EXPECT_TRUE(is_utf8(escape_xml("\x80<\xFF\xC0\xAF\xF4\x90\x80\x80")));
}

TEST(Quote, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(quote("a \"b\" \\ \n\t\x01 c'"), R"("a \"b\" \\ \n\t\001 c'")");
}

TEST(Base64, PadsToFourCharacters) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
}

TEST(ParseBoolean, AcceptsTheWordsOfProtobuf) {
  for (const char* text : {"true", "True", "t", "1"}) {
    bool value = false;
    EXPECT_TRUE(parse_boolean(text, &value)) << text;
    EXPECT_TRUE(value) << text;
  }
  for (const char* text : {"false", "False", "f", "0"}) {
    bool value = true;
    EXPECT_TRUE(parse_boolean(text, &value)) << text;
    EXPECT_FALSE(value) << text;
  }
  bool value = true;
  EXPECT_FALSE(parse_boolean("yes", &value));
  EXPECT_TRUE(value) << "unchanged";
}

}  // namespace
}  // namespace tandem
