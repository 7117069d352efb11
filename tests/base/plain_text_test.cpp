// Text files as editors and systems save them: every reader takes the same text.
#include "plugins/plain_text.h"

#include <gmock/gmock.h>

#include "core/base/files/plain_text_file.h"
#include "core/model/file/name_rules.h"
#include "core/model/file/text_format.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/cost/topology_file.h"
#include "plugins/composed.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::TempFolder;
using testing::ElementsAre;

constexpr const char* mark = "\xef\xbb\xbf";
constexpr const char* no_break = "\xc2\xa0";

std::string as_utf16(const std::string& ascii, bool little) {
  std::string bytes = little ? "\xff\xfe" : "\xfe\xff";
  for (const char c : ascii) bytes += little ? std::string{c, '\0'} : std::string{'\0', c};
  return bytes;
}

// One text as several editors save it.
std::vector<std::string> saved(const std::string& text) {
  std::string windows, old_mac, blanks;
  for (const char c : text) {
    windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
    old_mac += c == '\n' ? '\r' : c;
    blanks += c == ' '    ? std::string(no_break)
              : c == '\n' ? std::string(" \t\n")
                          : std::string(1, c);
  }
  return {text,
          mark + text,
          windows,
          mark + windows,
          old_mac,
          as_utf16(text, true),
          as_utf16(windows, false),
          as_utf16(text, true).substr(2),
          as_utf16(windows, false).substr(2),
          blanks};
}

TEST(PlainText, MarksLineEndsAndUtf16AreLeftOut) {
  for (const std::string& bytes : saved("one\ntwo\n")) {
    const TempFolder folder;
    std::string text = read_plain_text(folder.write("a.txt", bytes));
    std::erase(text, ' ');
    std::erase(text, '\t');
    EXPECT_EQ(text, "one\ntwo\n") << bytes;
  }
  EXPECT_EQ(plain_text("a\r\rb"), "a\n\nb");
  EXPECT_EQ(plain_text(""), "");
  EXPECT_EQ(plain_text("\xff\xfe"), "");
  EXPECT_EQ(plain_text(std::string("\xff\xfe\x3d\xd8\x00\xde\x3d\xd8", 8)),
            "\xf0\x9f\x98\x80\xef\xbf\xbd")
      << "a pair of UTF-16, and half of one";
}

TEST(PlainText, BlanksOfUnicodeAreBlanks) {
  for (const char* blank : {" ", "\t", no_break, "\xe2\x80\xaf", "\xe3\x80\x80", "\xe2\x80\x8b"}) {
    EXPECT_EQ(without_blanks(std::string(blank) + "a b" + blank + blank), "a b");
    EXPECT_EQ(plain_name(std::string(blank) + "New" + no_break + "York"), "New York");
  }
  EXPECT_EQ(without_blanks("\xc2\xa0\xe2\x80\xaf"), "");
  EXPECT_EQ(plain_name("  "), "  ") << "a name is never empty";
}

TEST(PlainText, LettersAreComposedAndDecomposed) {
  EXPECT_EQ(to_composed("cafe\xcc\x81"), "caf\xc3\xa9");
  EXPECT_EQ(to_decomposed("caf\xc3\xa9"), "cafe\xcc\x81");
  EXPECT_EQ(to_composed("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"), "\xed\x95\x9c") << "Hangul";
  EXPECT_EQ(to_composed("\xe2\x84\xab"), "\xc3\x85") << "the sign of Angstrom";
  EXPECT_EQ(to_composed("caf\xe9"), "caf\xe9") << "Latin-1 is no UTF-8";
}

// ---- The files that people write ----

TEST(PlainText, PrototxtIsReadHoweverItWasSaved) {
  for (const std::string& bytes : saved("name: \"net\"\n# a comment\nlayer { name: \"a\" }\n")) {
    const TempFolder folder;
    const Message net = read_text_format(folder.write("net.prototxt", bytes));
    EXPECT_EQ(net.fields.size(), 2U) << bytes;
  }
}

TEST(PlainText, RulesForNamesAreReadHoweverTheyWereSaved) {
  for (const std::string& bytes : saved("net resnet18\n*.mean *.running_mean\n")) {
    const TempFolder folder;
    const NameRules rules = read_name_rules(folder.write("rules.txt", bytes));
    EXPECT_EQ(rules.net, "resnet18");
    ASSERT_EQ(rules.rules.size(), 1U);
    EXPECT_EQ(rules.rules[0].to, "*.running_mean");
  }
}

TEST(PlainText, CostsAreReadHoweverTheyWereSaved) {
  for (const std::string& bytes : saved("key,seconds,rows,bytes\nconv1 forward,0.061,128,0\n")) {
    const TempFolder folder;
    const CostTable costs = CostTable::read(folder.write("costs.csv", bytes), {});
    EXPECT_NE(costs.find("conv1 forward"), nullptr) << bytes;
  }
}

}  // namespace
}  // namespace tandem
