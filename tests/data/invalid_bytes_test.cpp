// The bytes that a data set reports are checked when it is opened. Each fault of
// tests/bad_plugins/bad_bytes is refused.
#include "core/data/dataset.h"

#include <gmock/gmock.h>

#include "tests/data/data_sets.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class InvalidBytes : public testing::Test {
 protected:
  InvalidBytes() { registry_.scan(test::test_plugin_folder() / "bad_bytes"); }

  Dataset open(const std::string& name, const std::string& fault = "") {
    DatasetOptions options;
    options.source = name;
    options.shape = {1, 0, 0, 0};
    options.parameters["fault"] = fault;
    return {registry_, options};
  }
  std::string refusal(const std::string& name, const std::string& fault = "") {
    return test::message_of([&] { (void)open(name, fault); });
  }

  Registry registry_;
};

TEST_F(InvalidBytes, AreRefusedWithTheDataSetsNameAndTheValue) {
  const std::pair<const char*, const char*> faults[] = {
      {"zero_scale", "their scale (byte_scale) is 0; it must be finite and not 0"},
      {"nan_scale", "their scale (byte_scale) is nan; it must be finite and not 0"},
      {"nan_mean", "the mean of channel 1 (byte_means) is nan; it must be finite"},
      {"infinite_mean", "the mean of channel 2 (byte_means) is -inf; it must be finite"},
      {"channels", "its samples have 5 channels; bytes have 1 to 4"}};
  for (const auto& [fault, message] : faults) {
    EXPECT_EQ(refusal("bad_bytes", fault),
              fmt::format("data 'bad_bytes': data set 'bad_bytes' says that it has bytes "
                          "(has_bytes), but {}",
                          message));
  }
}

TEST_F(InvalidBytes, OfADataSetThatCannotGiveThemAreRefused) {
  EXPECT_THAT(refusal("no_get_bytes"),
              AllOf(StartsWith("data 'no_get_bytes': data set 'no_get_bytes' says that it has"),
                    HasSubstr("has no get_bytes() to give them")));
}

TEST_F(InvalidBytes, DoNotIncludeValidOnes) {
  const Dataset data = open("bad_bytes");
  EXPECT_TRUE(data.has_bytes());
  PixelScale scale;
  scale.means = {100, 100, 100, 0};
  scale.scale = 0.5F;
  EXPECT_EQ(data.pixel_scale(), scale) << "a channel that is not there has no mean";
}

}  // namespace
}  // namespace tandem
