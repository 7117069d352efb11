#include "core/report/page/page.h"

#include <gmock/gmock.h>

#include "core/report/page/chart.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Page, IsSelfContainedAndEscapesItsTitle) {
  const std::string page = html_page("<b>runs & \"more\"</b>", "<p>text</p>");
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;b&gt;runs &amp; "), Not(HasSubstr("<b>runs")),
                          HasSubstr("prefers-color-scheme:dark"), Not(HasSubstr("http"))));
}

TEST(Page, CutsLongTextsBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xa4";
  EXPECT_EQ(shown("a" + umlauts), "a" + umlauts.substr(0, 78) + "&hellip;");
  EXPECT_EQ(shown("<a>"), "&lt;a&gt;");
}

TEST(Chart, LeavesOutWhatIsNoNumberAndEmptyLines) {
  const double none = std::nan("");
  EXPECT_THAT(line_chart({"Loss", "epoch", false}, {{"training", {{1, none}}, false, 0}}),
              IsEmpty());
  const std::string svg =
      line_chart({"Loss", "epoch", false},
                 {{"<training>", {{1, 2}, {2, none}, {3, 1}}, false, 0}, {"empty", {}, false, 1}});
  EXPECT_THAT(svg, AllOf(HasSubstr("&lt;training&gt;"), Not(HasSubstr("nan")),
                         Not(HasSubstr("empty")), HasSubstr("<path")));
}

TEST(Chart, DrawsALongLineByFewPoints) {
  ChartLine line{"loss", {}, false, 0};
  for (int i = 0; i < 100000; ++i) line.points.emplace_back(i, 1.0 / (i + 1));
  EXPECT_LT(line_chart({"Loss", "step", false}, {line}).size(), 12000U);
}

}  // namespace
}  // namespace tandem
