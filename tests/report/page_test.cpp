#include "core/report/page/page.h"

#include <gmock/gmock.h>

#include "core/base/text/strings.h"
#include "core/report/metrics.h"
#include "core/report/page/png.h"
#include "tests/support/message_of.h"
#include "tests/support/page_data.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::page_data;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Page, IsSelfContainedAndEscapesItsTitle) {
  const std::string page = html_page("<b>runs & \"more\"</b>", {{"page", "run"}}, "<!-- one -->");
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;b&gt;runs &amp; "), Not(HasSubstr("<b>runs")),
                          HasSubstr("prefers-color-scheme:dark"), Not(HasSubstr("http"))));
  EXPECT_THAT(page, AllOf(HasSubstr("<!-- one -->"), HasSubstr("<noscript>"),
                          Not(HasSubstr("@title@")), Not(HasSubstr("@data@"))));
}

TEST(Page, HoldsTextsOfUsersAsTheyAre) {
  for (const char* one :
       {"</script><script>alert(1)</script>", "<!--<script>", "]]>", "\\u003c/script>", "a\"b\\c\n",
        "@data@", "@title@", "@comment@", "<img src=x onerror=alert(1)>", "${alert(1)}"}) {
    const std::string text = one;
    const std::string page = html_page(text, {{"page", "run"}, {text, {text, text}}});
    EXPECT_EQ(page_data(page).at(text), json({text, text})) << text;
    EXPECT_THAT(page, AllOf(HasSubstr("<title>" + escape_xml(text) + "</title>"),
                            Not(HasSubstr("<script>alert")), Not(HasSubstr("<img src=x"))))
        << text;
    const size_t data = page.find("<script id=data");
    const std::string inside = page.substr(data + 1, page.find("</script>", data) - data - 1);
    EXPECT_EQ(inside.find('<'), std::string::npos) << text;
  }
}

// Then a text in the data cannot become an element or a program.
TEST(Page, ItsScriptMakesTextsNothingButText) {
  const std::string page = html_page("title", {{"page", "run"}});
  for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                          "Function(", "setTimeout", "createContextualFragment", "DOMParser"}) {
    EXPECT_THAT(page, Not(HasSubstr(way)));
  }
  EXPECT_THAT(page, HasSubstr("createElement"));
}

TEST(Page, ReplacesBytesThatAreNotUtf8) {
  const std::string page = html_page("caf\xE9", {{"name", "caf\xE9.jpg"}});
  EXPECT_TRUE(is_utf8(page));
  EXPECT_EQ(page_data(page).at("name"), "caf\xEF\xBF\xBD.jpg");
}

TEST(Page, CutsLongTextsBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xa4";
  EXPECT_EQ(shown("a" + umlauts), "a" + umlauts.substr(0, 78) + "\xE2\x80\xA6");
  EXPECT_EQ(shown("<a>"), "<a>");
}

MetricRow row(const std::string& split, int64_t step, double loss) {
  MetricRow row;
  row.split = split;
  row.step = step;
  row.loss = loss;
  return row;
}

TEST(Curves, LeaveOutWhatIsNoNumberAndFiguresWithoutPoints) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(curves_json({row("val", 1, no_figure)}, 1), json::object());
  EXPECT_EQ(curves_json({row("val", 10, 2), row("val", 20, no_figure), row("val", 25, infinite),
                         row("val", 30, 1), row("train", 30, no_figure)},
                        0.1),
            json::parse(R"({"val": {"loss": [[1.0, 2.0], [3.0, 1.0]]}})"));
}

TEST(Curves, OfManyStepsHaveFewPoints) {
  std::vector<MetricRow> rows;
  for (int i = 0; i < 100000; ++i) rows.push_back(row("train", i, 1.0 / (i + 1)));
  const json curves = curves_json(rows, 1);
  EXPECT_EQ(curves.at("train").at("loss").size(), 400U);
  EXPECT_LT(curves.dump().size(), 12000U);
}

TEST(Png, HasTheSizeOfItsPicture) {
  const std::string png = to_png(3, 2, std::vector<unsigned char>(18, 200));
  EXPECT_THAT(png, testing::StartsWith("\x89PNG\r\n"));
  EXPECT_EQ(png.substr(12, 12), std::string("IHDR\0\0\0\3\0\0\0\2", 12));
  EXPECT_THAT(test::message_of([] {
                (void)to_png(3, 2, {1, 2, 3});
              }),
              HasSubstr("a PNG of 3x2 has 3 bytes of pixels"));
}

}  // namespace
}  // namespace tandem
