// `tandem devices --links` and --tune where devices know of neither.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

class AskedForLinks : public testing::Test {
 protected:
  std::string printed(const std::string& arguments) {
    const Outcome outcome = desk_.tandem(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return outcome.output;
  }
  Desk desk_;
};

TEST_F(AskedForLinks, CpuAndSimDevicesNameTheAlternative) {
  EXPECT_THAT(
      printed("devices --links"),
      HasSubstr("cpu devices report nothing about their links: measure them with --measure FILE"));
  EXPECT_THAT(printed("devices --links --devices sim:3"),
              HasSubstr("sim devices report nothing about their links: describe them with --link"));
}

TEST_F(AskedForLinks, OneDeviceIsTooFew) {
  EXPECT_THAT(desk_.refusal("devices --links --devices cpu"),
              HasSubstr("links are between devices, so at least 2, as in cpu:2"));
}

TEST_F(AskedForLinks, OptionsThatChangeThemAreRefused) {
  EXPECT_THAT(desk_.refusal("devices --links --link bandwidth=1GB/s"),
              AllOf(HasSubstr("--link:"), HasSubstr("--links reads what the devices report")));
  EXPECT_THAT(desk_.refusal("devices --devices cpu:2"), HasSubstr("the list is of all devices"));
}

TEST_F(AskedForLinks, TuningOnACpuReportsThatItChangesNothing) {
  EXPECT_THAT(printed("profile --net lenet --batch 4 --steps 1 --warm-up 1 --tune"),
              HasSubstr("--tune changes nothing here: no kernel of this net on cpu devices chooses "
                        "by measuring"));
}

}  // namespace
}  // namespace tandem
