#include "core/model/file/text_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/numbers/random.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;

Message parsed_text(const std::string& text) {
  return parse_text_format(text, "net.prototxt");
}
std::string failure_of_text(const std::string& text) {
  return message_of([&] { (void)parsed_text(text); });
}

TEST(TextFormat, KeepsFieldsInFileOrderWithTheirLocations) {
  const Message message = parsed_text("name: \"AlexNet\"\n  base_lr: 0.01\nphase: TEST");
  ASSERT_EQ(message.fields.size(), 3u);
  EXPECT_EQ(message.fields[0].text, "AlexNet");
  EXPECT_TRUE(message.fields[0].quoted);
  EXPECT_EQ(message.fields[1].text, "0.01");
  EXPECT_FALSE(message.fields[1].quoted);
  EXPECT_EQ(to_string(message.fields[1].location), "net.prototxt:2:3");
  EXPECT_EQ(message.fields[2].text, "TEST");
}

TEST(TextFormat, OpensABlockWithOrWithoutAColonAndWithAngles) {
  const Message message = parsed_text("a { x: 1 } b: { x: 2 } c < x: 3 > d: < x: 4 >");
  ASSERT_EQ(message.fields.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_NE(message.fields[i].message, nullptr);
    EXPECT_EQ(message.fields[i].message->find("x")->text, std::to_string(i + 1));
  }
}

TEST(TextFormat, ExpandsAListIntoARepeatedField) {
  const Message message = parsed_text("dim: [1, 3, 227] layer [{ a: 1 }, { a: 2 }] empty: []");
  EXPECT_EQ(message.all("dim").size(), 3u);
  EXPECT_EQ(message.all("dim")[2]->text, "227");
  EXPECT_EQ(message.all("layer").size(), 2u);
  EXPECT_TRUE(message.all("empty").empty());
}

TEST(TextFormat, SkipsCommentsCommasAndSemicolons) {
  const Message message = parsed_text("a: 1, # first\nb: 2; c { d: 3, e: 4; }, # last");
  EXPECT_EQ(message.fields.size(), 3u);
  EXPECT_EQ(message.find("c")->message->fields.size(), 2u);
}

TEST(TextFormat, JoinsAdjacentTextsAndUndoesEscapes) {
  const Message message = parsed_text(R"(a: "one " 'two' b: "\"\\\n\t\101\x42\'")");
  EXPECT_EQ(message.find("a")->text, "one two");
  EXPECT_EQ(message.find("b")->text, "\"\\\n\tAB'");
}

TEST(TextFormat, KeepsNumbersAsWritten) {
  const Message message = parsed_text("a: -1e-4 b: - 2 c: .5 d: 1.0f e: 0xFF f: -inf");
  EXPECT_EQ(message.find("a")->text, "-1e-4");
  EXPECT_EQ(message.find("b")->text, "-2");
  EXPECT_EQ(message.find("c")->text, ".5");
  EXPECT_EQ(message.find("d")->text, "1.0");
  EXPECT_EQ(message.find("e")->text, "0xFF");
  EXPECT_EQ(message.find("f")->text, "-inf");
}

TEST(TextFormat, FindsTheLastOfARepeatedField) {
  const Message message = parsed_text("a: 1 a: 2");
  EXPECT_EQ(message.find("a")->text, "2");
  EXPECT_EQ(message.find("b"), nullptr);
}

TEST(TextFormat, AnErrorNamesFileLineAndColumnAndWhatWasFound) {
  EXPECT_EQ(failure_of_text("layer {\n  name: }"),
            "net.prototxt:2:9: expected a value for 'name', found '}'");
  EXPECT_EQ(failure_of_text("a: 1\nb 2"),
            "net.prototxt:2:3: expected ':' or '{' after 'b', found '2'");
  EXPECT_EQ(failure_of_text("a: 1\n}"), "net.prototxt:2:1: expected a field's name, found '}'");
  EXPECT_EQ(failure_of_text("a: [1 2]"),
            "net.prototxt:1:7: expected ',' or ']' in the list of 'a', found '2'");
  EXPECT_EQ(failure_of_text("a { \"x\": 1 }"),
            "net.prototxt:1:5: expected a field's name or the end of the block, "
            "found the text \"x\"");
  EXPECT_EQ(failure_of_text("a: 12b"), "net.prototxt:1:4: '12b' is not a number");
  EXPECT_EQ(failure_of_text("a: 3ff"), "net.prototxt:1:4: '3ff' is not a number");
  EXPECT_EQ(failure_of_text("a: 1 $"),
            "net.prototxt:1:6: '$' has no meaning here; is this a text file (.prototxt)?");
}

TEST(TextFormat, ABlockThatIsNotClosedIsNamedWithItsLine) {
  EXPECT_EQ(failure_of_text("layer {\n  name: \"a\"\n"),
            "net.prototxt:3:1: expected '}' to close 'layer' of line 1, "
            "found the end of the file");
}

TEST(TextFormat, ATextThatIsNotClosedIsAnErrorWhereItBegins) {
  EXPECT_EQ(failure_of_text("a: \"abc\nb: 1"),
            "net.prototxt:1:4: this text is not closed: expected '\"' before the end of the line");
  EXPECT_THAT(failure_of_text("a: \"abc\\q\""),
              testing::StartsWith("net.prototxt:1:8: unknown escape"));
}

TEST(TextFormat, APathOfWindowsHasItsBackslashes) {
  const auto text_of = [](const std::string& text) {
    return parse_text_format("a: " + text, "net.prototxt").fields.at(0).text;
  };
  EXPECT_EQ(text_of(R"("C:\new\mean.binaryproto")"), R"(C:\new\mean.binaryproto)");
  EXPECT_EQ(text_of(R"('d:\x\y')"), R"(d:\x\y)");
  EXPECT_EQ(text_of(R"("C:\\new\\train.txt")"), R"(C:\new\train.txt)");
  EXPECT_EQ(text_of(R"("one:\n")"), "one:\n");
}

TEST(TextFormat, RefusesTextsWithAZeroByte) {
  EXPECT_EQ(failure_of_text(std::string("a: \"b\0c\"", 8)),
            "net.prototxt:1:4: this text has a zero byte");
  EXPECT_EQ(failure_of_text(R"(a: "b\0c")"), "net.prototxt:1:4: this text has a zero byte");
}

TEST(TextFormat, RefusesBlocksNestedTooDeep) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "a{";
  EXPECT_THAT(failure_of_text(text), testing::HasSubstr("nested more than 64 deep"));
}

TEST(TextFormat, AWrittenMessageReadsAsTheSame) {
  const std::string text =
      "name: \"a \\\"b\\\" \\n \\001\"\nlayer {\n  type: \"ReLU\"\n  dim: 1\n  dim: 2\n  x {\n  "
      "}\n}\n";
  EXPECT_EQ(write_text_format(parsed_text(text)), text);
}

TEST(TextFormat, AFileThatCannotBeReadIsNamed) {
  const test::TempFolder folder;
  EXPECT_THAT(message_of([&] { (void)read_text_format(folder / "no.prototxt"); }),
              testing::AllOf(testing::HasSubstr("no.prototxt' cannot be read")));
  EXPECT_THAT(message_of([&] { (void)read_text_format(folder.path()); }),
              testing::HasSubstr("is a folder"));
}

// Every input must give a tree or an Error; anything else would end the test program.
TEST(TextFormat, FilesOfOtherProgramsAreNamed) {
  EXPECT_THAT(message_of([] { (void)parse_text_format("[net]\nbatch=8", "a.cfg"); }),
              testing::HasSubstr("a.cfg:1:1: this is a file of Darknet"));
  EXPECT_THAT(message_of([] { (void)parse_text_format("{\"config\": 1}", "a.json"); }),
              testing::HasSubstr("a.json:1:1: this is JSON"));
}

TEST(TextFormat, SurvivesRandomDamage) {
  const std::string text =
      "name: \"AlexNet\" # a comment\nlayer { name: 'conv1' type: \"Conv\\101\" x: [1, 2.5e-3]\n"
      "  convolution_param < num_output: 96; weight_filler { std: -0.01 } > }\n";
  const std::string alphabet("{}<>[]:;,\"'\\#-.e0xa \n\0\xff", 24);
  Random random(7, stream_of("damage"));
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    for (uint64_t i = 0; i <= random.below(4); ++i) {
      const size_t place = random.below(damaged.size());
      const char replacement = alphabet[random.below(alphabet.size())];
      switch (random.below(3)) {
        case 0:
          damaged[place] = replacement;
          break;
        case 1:
          damaged.insert(place, 1, replacement);
          break;
        default:
          damaged.erase(place, 1 + random.below(5));
      }
      if (damaged.empty()) break;
    }
    try {
      (void)parsed_text(write_text_format(parsed_text(damaged)));
    } catch (const Error& failure) {
      ++refused;
      EXPECT_THAT(failure.what(), testing::StartsWith("net.prototxt:"));
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tandem
