#include "core/base/strings.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(Xml, EscapesWhatWouldBeMarkup) {
  EXPECT_EQ(escape_xml("a<b & \"c\">\xC3\xA4"), "a&lt;b &amp; &quot;c&quot;&gt;\xC3\xA4");
}

}  // namespace
}  // namespace tandem
