#include "core/plugin/attributes.h"
#include "tests/support/message_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace tandem {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

tandem_parameter parameter(int32_t type, const char* name, const char* default_value = nullptr) {
  tandem_parameter result{};
  result.struct_size = sizeof(result);
  result.type = type;
  result.block = "test_param";
  result.name = name;
  result.default_value = default_value;
  result.minimum = 1;
  result.maximum = 0;
  result.help = "";
  return result;
}

const std::string owner = "layer 'conv1' (Convolution)";
const Location place{"net.prototxt", 23, 5};

Attribute parse(const tandem_parameter& declared, const std::vector<std::string>& raw) {
  return parse_attribute(declared, raw, owner, place);
}

std::string refusal(const tandem_parameter& declared, const std::vector<std::string>& raw) {
  return message_of([&] { (void)parse(declared, raw); });
}

TEST(Attribute, ParsesEachTypeAndKeepsItsLocation) {
  EXPECT_EQ(std::get<int64_t>(parse(parameter(TANDEM_PARAMETER_INTEGER, "i"), {"-3"}).value), -3);
  EXPECT_EQ(std::get<double>(parse(parameter(TANDEM_PARAMETER_NUMBER, "n"), {"1e-2"}).value), 1e-2);
  EXPECT_TRUE(std::get<bool>(parse(parameter(TANDEM_PARAMETER_BOOLEAN, "b"), {"true"}).value));
  EXPECT_FALSE(std::get<bool>(parse(parameter(TANDEM_PARAMETER_BOOLEAN, "b"), {"0"}).value));
  EXPECT_EQ(std::get<std::string>(parse(parameter(TANDEM_PARAMETER_TEXT, "t"), {"a b"}).value),
            "a b");
  const Attribute list = parse(parameter(TANDEM_PARAMETER_INTEGERS, "l"), {"3", "5"});
  EXPECT_THAT(std::get<std::vector<int64_t>>(list.value), ElementsAre(3, 5));
  const Attribute numbers = parse(parameter(TANDEM_PARAMETER_NUMBERS, "c"), {"1", "-0.5"});
  EXPECT_THAT(std::get<std::vector<double>>(numbers.value), ElementsAre(1, -0.5));
  EXPECT_TRUE(list.is_set);
  EXPECT_EQ(to_string(list.location), "net.prototxt:23:5");
}

TEST(Attribute, ARefusalNamesOwnerParameterValueRightValueAndLocation) {
  tandem_parameter kernel = parameter(TANDEM_PARAMETER_INTEGERS, "kernel_size");
  kernel.minimum = 1;
  kernel.maximum = 100;
  EXPECT_EQ(refusal(kernel, {"3", "0"}),
            "layer 'conv1' (Convolution): kernel_size is '0', but must be from 1 to 100 "
            "(net.prototxt:23:5)");
}

TEST(Attribute, ARangeIncludesBothEnds) {
  tandem_parameter ratio = parameter(TANDEM_PARAMETER_NUMBER, "ratio");
  ratio.minimum = 0;
  ratio.maximum = 0.5;
  EXPECT_EQ(std::get<double>(parse(ratio, {"0"}).value), 0);
  EXPECT_EQ(std::get<double>(parse(ratio, {"0.5"}).value), 0.5);
  EXPECT_THAT(refusal(ratio, {"0.51"}), HasSubstr("must be from 0 to 0.5"));
  EXPECT_THAT(refusal(ratio, {"-0.01"}), HasSubstr("must be from 0 to 0.5"));
}

TEST(Attribute, AHalfOpenRangeIsReportedAsOne) {
  tandem_parameter stride = parameter(TANDEM_PARAMETER_INTEGER, "stride");
  stride.minimum = 1;
  stride.maximum = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal(stride, {"0"}), HasSubstr("must be at least 1 ("));
}

TEST(Attribute, RefusesAValueOfAnotherType) {
  EXPECT_THAT(refusal(parameter(TANDEM_PARAMETER_INTEGER, "i"), {"1.5"}),
              HasSubstr("i is '1.5', but must be an integer"));
  EXPECT_THAT(refusal(parameter(TANDEM_PARAMETER_NUMBER, "n"), {"x"}), HasSubstr("finite number"));
  EXPECT_THAT(refusal(parameter(TANDEM_PARAMETER_NUMBER, "n"), {"nan"}),
              HasSubstr("finite number"));
  EXPECT_THAT(refusal(parameter(TANDEM_PARAMETER_BOOLEAN, "b"), {"yes"}),
              HasSubstr("true or false"));
  EXPECT_THAT(refusal(parameter(TANDEM_PARAMETER_FILLER, "f"), {"xavier"}), HasSubstr("message"));
}

TEST(Attribute, ASingleValueWrittenTwiceIsRefused) {
  EXPECT_THAT(refusal(parameter(TANDEM_PARAMETER_INTEGER, "i"), {"1", "2"}),
              HasSubstr("i is '1, 2', but must be an integer, written once"));
}

TEST(Attribute, AWrongWordIsReportedWithTheChoicesAndTheNearOne) {
  tandem_parameter pool = parameter(TANDEM_PARAMETER_TEXT, "pool");
  pool.choices = "MAX|AVE";
  EXPECT_EQ(std::get<std::string>(parse(pool, {"AVE"}).value), "AVE");
  EXPECT_THAT(refusal(pool, {"max"}),
              HasSubstr("pool is 'max', but must be one of MAX, AVE (did you mean 'MAX'?)"));
}

TEST(Attribute, ADefaultIsParsedButNotMarkedAsSet) {
  const Attribute value = default_attribute(parameter(TANDEM_PARAMETER_NUMBER, "n", "0.5"), owner);
  EXPECT_EQ(std::get<double>(value.value), 0.5);
  EXPECT_FALSE(value.is_set);
  const Attribute list = default_attribute(parameter(TANDEM_PARAMETER_INTEGERS, "l", "3,5"), owner);
  EXPECT_THAT(std::get<std::vector<int64_t>>(list.value), ElementsAre(3, 5));
}

TEST(Attribute, WithoutADefaultAValueIsAbsentAListEmptyAndAFillerConstantZero) {
  const auto absent = default_attribute(parameter(TANDEM_PARAMETER_INTEGER, "i"), owner);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(absent.value));
  const auto list = default_attribute(parameter(TANDEM_PARAMETER_INTEGERS, "l"), owner);
  EXPECT_TRUE(std::get<std::vector<int64_t>>(list.value).empty());
  const auto numbers = default_attribute(parameter(TANDEM_PARAMETER_NUMBERS, "c"), owner);
  EXPECT_TRUE(std::get<std::vector<double>>(numbers.value).empty());
  const auto filler = default_attribute(parameter(TANDEM_PARAMETER_FILLER, "f"), owner);
  EXPECT_EQ(std::get<Filler>(filler.value).type, "constant");
  EXPECT_EQ(std::get<Filler>(filler.value).value, 0);
}

TEST(Attribute, ADefaultOutsideItsOwnRangeIsRefused) {
  tandem_parameter stride = parameter(TANDEM_PARAMETER_INTEGER, "stride", "0");
  stride.minimum = 1;
  stride.maximum = 9;
  EXPECT_THROW((void)default_attribute(stride, owner), Error);
}

TEST(Attributes, GiveValuesByNameAndType) {
  Attributes attributes;
  attributes.set("count", {.value = int64_t{3}, .is_set = true, .location = {}});
  attributes.set("bias", {.value = true, .is_set = false, .location = {}});
  attributes.set("ratio", {.value = 0.25, .is_set = false, .location = {}});
  EXPECT_EQ(attributes.integer("count"), 3);
  EXPECT_EQ(attributes.integer("bias"), 1);
  EXPECT_EQ(attributes.number("ratio"), 0.25);
  EXPECT_TRUE(attributes.is_set("count"));
  EXPECT_FALSE(attributes.is_set("bias"));
}

TEST(Attributes, ReadingAnUndeclaredNameOrAnotherTypeIsAnError) {
  Attributes attributes;
  attributes.set("num_output", {.value = int64_t{3}, .is_set = true, .location = {}});
  attributes.set("axis", {});
  EXPECT_EQ(message_of([&] { (void)attributes.integer("num_outputs"); }),
            "parameter 'num_outputs' was not declared (did you mean 'num_output'?)");
  EXPECT_EQ(message_of([&] { (void)attributes.text("num_output"); }),
            "parameter 'num_output' was read as a text, but it is an integer");
  EXPECT_EQ(message_of([&] { (void)attributes.integer("axis"); }),
            "parameter 'axis' was read as an integer, but it has no value");
}

}  // namespace
}  // namespace tandem
