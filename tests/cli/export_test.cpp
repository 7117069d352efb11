// `tandem export` to ONNX as a user calls it: what it prints, and that a failure leaves nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/failing_disk.h"
#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

class Export : public testing::Test {
 protected:
  void SetUp() override { desk_.draw_two_classes("images"); }
  void train(const std::string& net, const std::string& more = "") {
    const Outcome outcome = desk_.tandem("train --net " + net +
                                         " --data images --batch 4 --seed 7 --lr 0.01 --steps 2 "
                                         "--out run " +
                                         more);
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
  }
  void expect_no_file_like(const std::string& name) {
    for (const auto& entry : fs::directory_iterator(desk_ / "")) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(name)) << entry.path();
    }
  }

  Desk desk_;
};

TEST_F(Export, SaysWhatItWrote) {
  train("tiny.prototxt");
  for (const std::string how : {"net.onnx", "--onnx other --preprocess 12x10 --softmax"}) {
    const Outcome outcome = desk_.tandem("export --run run " + how);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr("weights of run written to"));
  }
  EXPECT_TRUE(fs::exists(desk_ / "net.onnx"));
  EXPECT_TRUE(fs::exists(desk_ / "other"));
}

TEST_F(Export, LeavesNothingOnAFullDisk) {
  train("tiny.prototxt");
  EXPECT_THAT(
      desk_.refusal("export --run run net.onnx", test::failing_disk + " FULL_FILE=net.onnx.new"),
      AllOf(HasSubstr("net.onnx'"), HasSubstr("No space left")));
  expect_no_file_like("net.onnx");
}

TEST_F(Export, LeavesNothingIfTheScoresAreNotFinite) {
  // In testing they are roots of negative numbers.
  const std::string loss =
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"score\" "
      "bottom: \"label\" top: \"loss\"";
  desk_.write("roots.prototxt",
              test::replaced(test::tiny_net(), loss + " }", loss + " include { phase: TRAIN } }") +
                  "layer { name: \"root\" type: \"Power\" bottom: \"score\" top: \"root\" "
                  "power_param { power: 0.5 shift: -1000 } include { phase: TEST } }\n"
                  "layer { name: \"other\" type: \"SoftmaxWithLoss\" bottom: \"root\" "
                  "bottom: \"label\" top: \"other\" include { phase: TEST } }\n");
  train("roots.prototxt");
  EXPECT_THAT(desk_.refusal("export --run run net.onnx"), HasSubstr("scores that are not finite"));
  expect_no_file_like("net.onnx");
}

TEST_F(Export, NamesTheLayerThatHasNoForm) {
  desk_.write("mvn.prototxt",
              test::replaced(test::tiny_net(), "layer { name: \"relu1\" type: \"ReLU\"",
                             "layer { name: \"odd\" type: \"MVN\""));
  train("mvn.prototxt");
  EXPECT_THAT(
      desk_.refusal("export --run run net.onnx"),
      AllOf(HasSubstr("layer 'odd' (MVN)"), HasSubstr("no ONNX form"), HasSubstr("net.prototxt:")));
  expect_no_file_like("net.onnx");
}

TEST_F(Export, RefusesOptionsThatFitNoFile) {
  train("tiny.prototxt");
  EXPECT_THAT(desk_.refusal("export --run run"), HasSubstr("name one file to write"));
  EXPECT_THAT(desk_.refusal("export --run run --softmax weights.safetensors"),
              HasSubstr("are for ONNX files"));
  EXPECT_THAT(desk_.refusal("export --run run --preprocess big net.onnx"), HasSubstr("as 480x640"));
  desk_.write("net.onnx", "mine");
  EXPECT_THAT(desk_.refusal("export --run run net.onnx"), HasSubstr("exists already"));
  EXPECT_EQ(desk_.read("net.onnx"), "mine");
}

}  // namespace
}  // namespace tandem
