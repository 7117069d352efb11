#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/plugin/attributes.h"
#include "core/plugin/host.h"
#include "core/plugin/module.h"

namespace tandem {
namespace {

using testing::HasSubstr;

Attributes example() {
  Attributes attributes;
  attributes.set("pad", {.value = int64_t{2}, .is_set = true, .location = {}});
  attributes.set("bias", {.value = true, .is_set = false, .location = {}});
  attributes.set("ratio", {.value = 0.25, .is_set = false, .location = {}});
  attributes.set("pool", {.value = std::string("MAX"), .is_set = false, .location = {}});
  attributes.set("kernel", {.value = std::vector<int64_t>{3, 5}, .is_set = true, .location = {}});
  attributes.set("coeff", {.value = std::vector<double>{1, -0.5}, .is_set = true, .location = {}});
  return attributes;
}

TEST(HostTable, GivesValuesOfEveryTypeThroughC) {
  const Attributes attributes = example();
  const tandem_host& host = host_table();
  int64_t integer = 0;
  EXPECT_EQ(host.get_integer(attributes.handle(), "pad", &integer), TANDEM_OK);
  EXPECT_EQ(integer, 2);
  EXPECT_EQ(host.get_integer(attributes.handle(), "bias", &integer), TANDEM_OK);
  EXPECT_EQ(integer, 1);
  double number = 0;
  EXPECT_EQ(host.get_number(attributes.handle(), "ratio", &number), TANDEM_OK);
  EXPECT_EQ(number, 0.25);
  const char* text = nullptr;
  EXPECT_EQ(host.get_text(attributes.handle(), "pool", &text), TANDEM_OK);
  EXPECT_STREQ(text, "MAX");
  const int64_t* values = nullptr;
  uint32_t count = 0;
  EXPECT_EQ(host.get_integers(attributes.handle(), "kernel", &values, &count), TANDEM_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(values[1], 5);
  const double* numbers = nullptr;
  EXPECT_EQ(host.get_numbers(attributes.handle(), "coeff", &numbers, &count), TANDEM_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(numbers[1], -0.5);
  EXPECT_EQ(host.is_set(attributes.handle(), "kernel"), 1);
  EXPECT_EQ(host.is_set(attributes.handle(), "ratio"), 0);
}

TEST(HostTable, ReportsAWrongCallByAStatusAndAReason) {
  const Attributes attributes = example();
  int64_t value = 7;
  EXPECT_EQ(host_table().get_integer(attributes.handle(), "pat", &value), TANDEM_INVALID);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(take_reason(), "parameter 'pat' was not declared (did you mean 'pad'?)");
  EXPECT_EQ(host_table().get_integer(nullptr, "pad", &value), TANDEM_INVALID);
  EXPECT_EQ(take_reason(), "it was asked for a parameter where there are none");
  EXPECT_EQ(host_table().is_set(attributes.handle(), "pat"), 0);
  EXPECT_EQ(host_table().is_set(nullptr, "pad"), 0);
}

TEST(Reason, IsTakenOnce) {
  host_table().explain("the drum is empty");
  EXPECT_STREQ(host_table().explained(), "the drum is empty");
  EXPECT_EQ(take_reason(), "the drum is empty");
  EXPECT_EQ(take_reason(), "");
  EXPECT_STREQ(host_table().explained(), "");
}

TEST(Reason, IsSeparateForEachThread) {
  host_table().explain("mine");
  std::string theirs = "unset";
  std::thread([&] {
    theirs = take_reason();
    host_table().explain("theirs");
  }).join();
  EXPECT_EQ(theirs, "");
  EXPECT_EQ(take_reason(), "mine");
}

TEST(Check, NamesTheFailedCallBeforeTheReason) {
  EXPECT_NO_THROW(check(TANDEM_OK, "layer 'conv1'"));
  host_table().explain("kernel 11 exceeds the padded input 8x8");
  try {
    check(TANDEM_INVALID, "layer 'conv1'");
    FAIL() << "no error";
  } catch (const Error& failure) {
    EXPECT_STREQ(failure.what(), "layer 'conv1': kernel 11 exceeds the padded input 8x8");
  }
}

TEST(Check, DropsTheReasonOfACallThatSucceeded) {
  host_table().explain("the first attempt failed");
  check(TANDEM_OK, "layer 'conv1'");
  EXPECT_EQ(take_reason(), "");
}

TEST(Check, NamesTheStatusWhereThePluginGaveNoReason) {
  try {
    check(TANDEM_OUT_OF_MEMORY, "device 1");
    FAIL() << "no error";
  } catch (const Error& failure) {
    EXPECT_STREQ(failure.what(), "device 1: out of memory (status 3; the plugin gave no reason)");
  }
}

TEST(LoaderMessage, DemanglesACppSymbol) {
  EXPECT_THAT(explain_loader_message("/p/a.so", "/p/a.so: undefined symbol: _ZN4acme5tableEi"),
              HasSubstr("the symbol 'acme::table(int)'"));
}

TEST(LoaderMessage, OfANewerSystemSaysToRebuild) {
  EXPECT_THAT(explain_loader_message("/p/a.so",
                                     "/lib/libstdc++.so.6: version `GLIBCXX_3.4.99' not found "
                                     "(required by /p/a.so)"),
              HasSubstr("built on a newer system (/lib/libstdc++.so.6: version `GLIBCXX_3.4.99'"));
}

TEST(LoaderMessage, ThatIsUnknownIsReportedUnchanged) {
  EXPECT_EQ(explain_loader_message("/p/a.so", "/p/a.so: the moon is full"),
            "it cannot be loaded: the moon is full");
}

}  // namespace
}  // namespace tandem
