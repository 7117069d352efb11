// A data set that gives NULL for a text (tests/bad_plugins/null_texts) is named in the Error.
#include <gmock/gmock.h>

#include "core/data/dataset.h"
#include "tests/data/data_sets.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

class NullTexts : public testing::Test {
 protected:
  NullTexts() { registry_.scan(test::test_plugin_folder() / "null_texts"); }

  template <class Ask>
  std::string refusal(const std::string& name, const Ask& ask) {
    DatasetOptions options;
    options.source = name;
    options.shape = {1, 0, 0, 0};
    const Dataset data(registry_, options);
    return test::message_of([&] { (void)ask(data); });
  }

  Registry registry_;
};

TEST_F(NullTexts, NameTheDataSetAndTheFunction) {
  EXPECT_EQ(refusal("null_class_name", [](const Dataset& data) { return data.class_names(); }),
            "data set 'null_class_name': class_name(0) gave NULL instead of a text");
  EXPECT_EQ(refusal("null_sample_name", [](const Dataset& data) { return data.sample_name(3); }),
            "data set 'null_sample_name': sample_name(3) gave NULL instead of a text");
  EXPECT_EQ(refusal("null_notes", [](const Dataset& data) { return data.notes(); }),
            "data set 'null_notes': notes() gave NULL instead of a text");
  std::string reason;
  EXPECT_EQ(refusal("null_format", [&](const Dataset& data) { return data.describe(2, &reason); }),
            "data set 'null_format': describe(2) gave NULL instead of a text");
}

}  // namespace
}  // namespace tandem
