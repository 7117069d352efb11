#include "core/report/page/page.h"

#include <gmock/gmock.h>

#include "core/base/text/strings.h"
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

TEST(Charts, LeaveOutWhatIsNoNumberAndEmptyLines) {
  const double none = std::nan("");
  EXPECT_EQ(charts_json({{"Loss", false, {{"training", {{1, none}}}}}}), json::array());
  const json charts = charts_json(
      {{"Loss", false, {{"<training>", {{1, 2}, {2, none}, {3, 1}}}, {"empty", {}, 1}}}});
  ASSERT_EQ(charts.at(0).at("lines").size(), 1U);
  EXPECT_EQ(charts[0]["lines"][0].at("name"), "<training>");
  EXPECT_EQ(charts[0]["lines"][0].at("points"), json::parse("[[1.0, 2.0], [3.0, 1.0]]"));
}

TEST(Charts, DrawALongLineByFewPoints) {
  ChartLine line{"loss", {}};
  for (int i = 0; i < 100000; ++i) line.points.emplace_back(i, 1.0 / (i + 1));
  EXPECT_LT(charts_json({{"Loss", false, {line}}}).dump().size(), 12000U);
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
