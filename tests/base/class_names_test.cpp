#include "plugins/class_names.h"

#include <gmock/gmock.h>

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Names without a remark.
std::vector<std::string> plain(const std::string& text) {
  const ClassNames read = read_class_names(text);
  EXPECT_EQ(read.mistake, "") << text;
  EXPECT_THAT(read.notes, IsEmpty()) << text;
  return read.names;
}

TEST(ClassNames, AreTheLinesOfAFile) {
  EXPECT_THAT(plain("cat\ndog\n"), ElementsAre("cat", "dog"));
  EXPECT_THAT(plain("  cat \n dog\n\n\n"), ElementsAre("cat", "dog"));
  EXPECT_THAT(plain("n01440764 tench, Tinca tinca\nn01443537 goldfish\n"),
              ElementsAre("n01440764 tench, Tinca tinca", "n01443537 goldfish"));
  EXPECT_THAT(plain("0\n1\n2\n"), ElementsAre("0", "1", "2"));
  EXPECT_THAT(plain("boeing 747\nairbus 320\n"), ElementsAre("boeing 747", "airbus 320"));
  EXPECT_THAT(plain("it's\n'tis\n"), ElementsAre("it's", "'tis"));
  EXPECT_THAT(plain("#one\n#two\n"), ElementsAre("#one", "#two"));
}

TEST(ClassNames, LoseTheirQuotes) {
  EXPECT_THAT(plain("\"cat\"\n\"red fox\"\n"), ElementsAre("cat", "red fox"));
  EXPECT_THAT(plain("'cat',\n'dog',\n'fox'\n"), ElementsAre("cat", "dog", "fox"));
}

TEST(ClassNames, AreNoComments) {
  const ClassNames read = read_class_names("# made by a tool\ncat\ndog\n");
  EXPECT_THAT(read.names, ElementsAre("cat", "dog"));
  EXPECT_THAT(read.notes, ElementsAre("1 line begins with '#': no class"));
}

TEST(ClassNames, HaveTheNumbersBesideThem) {
  for (const char* text :
       {"0 cat\n1 dog\n2 red fox\n", "2: red fox\n0: cat\n1: dog\n", "0,cat\n1,dog\n2,red fox\n",
        "cat,0\nred fox,2\ndog,1\n", "id,name\n0,cat\n1,dog\n2,red fox\n",
        "class;id\ncat;0\ndog;1\nred fox;2\n", "0 \"cat\"\n1 \"dog\"\n\n2 \"red fox\"\n"}) {
    const ClassNames read = read_class_names(text);
    EXPECT_THAT(read.names, ElementsAre("cat", "dog", "red fox")) << text;
    EXPECT_THAT(read.notes, ElementsAre(HasSubstr("the numbers beside the names"))) << text;
  }
  EXPECT_THAT(read_class_names("1 Wren\n2 Auklet\n").names, ElementsAre("0", "Wren", "Auklet"));
  EXPECT_THAT(plain("3 series\n5 series\n"), ElementsAre("3 series", "5 series"));
}

TEST(ClassNames, AreReadFromListsAndDictionaries) {
  for (const char* text :
       {"[\"cat\", \"it's\"]", "['cat', \"it's\",]", "{\"0\": \"cat\", \"1\": \"it's\"}",
        "{0: 'cat',\n 1: \"it's\"}\n", "{\"cat\": 0, \"it's\": 1}", "[cat, it's]",
        "{\"0\": [\"n01\", \"cat\"], \"1\": [\"n02\", \"it's\"]}", "['cat', 'it\\'s']"}) {
    EXPECT_THAT(plain(text), ElementsAre("cat", "it's")) << text;
  }
  for (const char* text : {"{\"cat\": 3, \"dog\": 7}", "[\"cat\"", "{\"a\": {\"b\": 1}}", "[]",
                           "{\"cat\" \"dog\"}", "[[]]", "[[[\"cat\"]]]"}) {
    EXPECT_THAT(read_class_names(text).mistake, HasSubstr("neither a list of names nor")) << text;
  }
}

TEST(ClassNames, AreReadFromYaml) {
  for (const char* text :
       {"# COCO\npath: ../x\nnc: 2\nnames: ['cat', 'dog']\n",
        "names:\n  0: cat\n  1: dog  # the second\ntrain: images\n",
        "nc: 2\nnames:\n- cat\n- 'dog'\n", "names: [cat,\n  dog]\nval: x\n",
        "names: {0: cat, 1: dog}\n", "names:\n  - cat\n\n  # one more\n  - dog\n"}) {
    EXPECT_THAT(plain(text), ElementsAre("cat", "dog")) << text;
  }
}

TEST(ClassNames, SayWhereThereAreNone) {
  EXPECT_EQ(read_class_names("").mistake, "the file is empty");
  EXPECT_EQ(read_class_names("\n \n").mistake, "the file is empty");
  const ClassNames gap = read_class_names("cat\n\ndog\n");
  EXPECT_EQ(gap.mistake, "is empty, but every line names a class");
  EXPECT_EQ(gap.line, 2U);
  EXPECT_THAT(read_class_names("classes = 2\nnames = obj.names\n").mistake,
              HasSubstr("the file of its 'names'"));
}

}  // namespace
}  // namespace tandem
