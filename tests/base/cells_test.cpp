#include "plugins/cells.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

TEST(Cells, OfAFormulaBeginWithAnApostrophe) {
  EXPECT_EQ(safe_cell("=1+1"), "'=1+1");
  EXPECT_EQ(safe_cell("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(safe_cell("-2+3"), "'-2+3");
  EXPECT_EQ(safe_cell("\xef\xbc\x9d"
                      "1"),
            "'\xef\xbc\x9d"
            "1");  // a wide =
  EXPECT_EQ(safe_cell("'=1"), "''=1");
  for (const std::string number : {"-1", "+2.5", "-1e-3"}) EXPECT_EQ(safe_cell(number), number);
  for (const std::string name : {"cat", "a=b", "'n", "don't", "O'=x", ""}) {
    EXPECT_EQ(safe_cell(name), name);
  }
}

TEST(Cells, HoldNothingThatATerminalActsOn) {
  EXPECT_EQ(safe_cell("\x1b[31mred"), "\\u{1b}[31mred");
  EXPECT_EQ(safe_cell("\xc2\x9b"
                      "2J"),
            "\\u{9b}2J");
  EXPECT_EQ(safe_cell("a\xe2\x80\xae"
                      "b\xe2\x81\xa7"),
            "a\\u{202e}b\\u{2067}");
  EXPECT_EQ(safe_cell("\xd8\x9c\x7f\n"), "\\u{61c}\\u{7f}\\u{a}");
  EXPECT_EQ(safe_cell("na\xc3\xafve \xe2\x82\xac"), "na\xc3\xafve \xe2\x82\xac");
}

TEST(Cells, GiveTheSameNameWhenTheyAreRead) {
  for (const std::string name : {"cat", "=1+1", "'=1", "''-x", "'", "-", "-1", "\x1b[0m", "\\u{1b}",
                                 "\\u{5c}u{1b}", "\\u", "\\u{", "\\u{zz}", "C:\\u{1}", "\xc2\x9b",
                                 "\xe2\x80\xae"
                                 "=1",
                                 "\x9b", "=\x1b'"}) {
    EXPECT_EQ(name_of_cell(safe_cell(name)), name) << safe_cell(name);
  }
}

TEST(Cells, OfOtherProgramsAreReadAsTheyAre) {
  for (const std::string cell : {"\\u{41}", "\\u{}", "\\u{1b", "'tis", "a\\b", "\\"}) {
    EXPECT_EQ(name_of_cell(cell), cell);
  }
}

}  // namespace
}  // namespace tandem
