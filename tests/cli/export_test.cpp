// `tandem export` to ONNX as a user calls it: what it prints, and that a failure leaves nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/failing_disk.h"
#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

class Export : public testing::Test {
 protected:
  void SetUp() override { desk_.draw_two_classes("images"); }
  void train(const std::string& net, const std::string& more = "") {
    const Outcome outcome =
        desk_.tandem("train --net " + net +
                     " --data images --batch 4 --seed 7 --lr 0.01 "
                     "--out run " +
                     (more.find("--steps") == more.npos ? "--steps 2 " : "") + more);
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

TEST_F(Export, ReadAgainPredictsAsTheRunWithTheNamesOfItsClasses) {
  desk_.draw("odd", 1, 120, 20, 90);
  const auto predicted = [&](const std::string& run) {
    const Outcome outcome = desk_.tandem("predict --run " + run + " --json odd/1.ppm");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    std::map<std::string, double> shares;
    const json answer = json::parse(outcome.output);
    for (const json& one : answer.at(0).at("scores")) {
      shares[one.at("class").get<std::string>()] = one.at("probability").get<double>();
    }
    return shares;
  };
  for (const std::string resize : {"resize=10", "resize=8"}) {
    train("tiny.prototxt", "--steps 20 --data-option " + resize);
    ASSERT_EQ(desk_.tandem("export --run run net.onnx").code, 0);
    const Outcome import = desk_.tandem("import net.onnx --out again");
    ASSERT_EQ(import.code, 0) << import.errors;
    const auto before = predicted("run"), after = predicted("again");
    ASSERT_EQ(before.size(), 2U);
    for (const auto& [name, share] : before) {
      ASSERT_TRUE(after.contains(name)) << name;
      EXPECT_NEAR(after.at(name), share, 1e-5) << name << " with " << resize;
    }
    for (const char* path : {"run", "again", "net.onnx"}) fs::remove_all(desk_ / path);
  }
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

TEST_F(Export, ReplacesAFileOnlyWhereThatIsAskedFor) {
  train("tiny.prototxt");
  const std::string file_names[] = {"net.onnx", "w.safetensors", "w.caffemodel"};
  for (const std::string& name : file_names) {
    desk_.write(name, "mine");
    EXPECT_THAT(desk_.refusal("export --run run " + name),
                AllOf(HasSubstr("'" + name + "' exists already"), HasSubstr("--overwrite")));
    EXPECT_EQ(desk_.read(name), "mine");
    const Outcome outcome = desk_.tandem("export --run run --overwrite " + name);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_GT(desk_.read(name).size(), 1000U);
    EXPECT_FALSE(fs::exists(desk_ / (name + ".new")));
  }
  EXPECT_EQ(desk_.tandem("test --run run").code, 0);
  // What a model cannot hold leaves the file that is there.
  desk_.write("net.onnx", "mine");
  EXPECT_THAT(desk_.refusal("export --run run --overwrite --dynamic-size --opset 13 net.onnx"),
              HasSubstr("opset"));
  EXPECT_EQ(desk_.read("net.onnx"), "mine");
  const std::string weights = desk_.read("run/last.safetensors");
  EXPECT_THAT(desk_.refusal("export --run run --overwrite run/last.safetensors"),
              HasSubstr("may be a file of the run in that folder"));
  EXPECT_EQ(desk_.read("run/last.safetensors"), weights);
  EXPECT_THAT(desk_.refusal("export --run run --overwrite --onnx run/run.json"),
              HasSubstr("may be a file of the run in that folder"));
  desk_.make_folder("folder.onnx");
  EXPECT_THAT(desk_.refusal("export --run run --overwrite folder.onnx"),
              HasSubstr("no regular file"));
}

// A picture of noise, which shows every difference in resizing.
void draw_noise(const Desk& desk, const std::string& file, int width, int height) {
  std::string text = fmt::format("P6\n{} {}\n255\n", width, height);
  uint32_t state = static_cast<uint32_t>(width);
  for (int i = 0; i < 3 * width * height; ++i) {
    state = state * 1664525U + 1013904223U;
    text += static_cast<char>(state >> 24U);
  }
  desk.write(file, text);
}

// The Python that has ONNX Runtime; "": there is none.
std::string onnx_python() {
  const char* given = std::getenv("TANDEM_PYTHON");
  const std::string python = given == nullptr ? "python3" : given;
  const std::string line = python + " -c 'import numpy, onnxruntime' > /dev/null 2>&1";
  return std::system(line.c_str()) == 0 ? python : "";
}

class DynamicSize : public Export, public testing::WithParamInterface<const char*> {};

TEST_P(DynamicSize, GivesThePredictionsOfTheRunInOnnxRuntime) {
  const std::string python = onnx_python();
  if (python.empty()) GTEST_SKIP() << "no Python with onnxruntime (TANDEM_PYTHON names one)";
  train("tiny.prototxt", GetParam());
  // ONNX Runtime's and Pillow's bytes differ by one here and there.
  const bool in_bytes = std::string(GetParam()).find("pillow") != std::string::npos;
  const double most = in_bytes ? 2e-3 : 2e-4;
  std::string files;
  for (const auto& [width, height] :
       {std::pair(40, 30), {31, 47}, {8, 8}, {64, 9}, {9, 50}, {7, 11}}) {
    const std::string file = fmt::format("{}x{}.ppm", width, height);
    draw_noise(desk_, file, width, height);
    files += " " + file;
  }
  for (const std::string opset : {"", "--opset 21 "}) {
    const std::string model = opset.empty() ? "a.onnx" : "b.onnx";
    const Outcome exported =
        desk_.tandem("export --run run --dynamic-size --softmax " + opset + model);
    ASSERT_EQ(exported.code, 0) << exported.errors;
    const std::string line = fmt::format(
        "cd '{}' && '{}' '{}/tests/cli/onnx_scores.py' {}{} > scores.json 2> errors.txt",
        (desk_ / "").string(), python, test::source_folder().string(), model, files);
    ASSERT_EQ(std::system(line.c_str()), 0) << desk_.read("errors.txt");
    const json theirs = json::parse(desk_.read("scores.json"));
    const json ours = json::parse(desk_.tandem("predict --run run --json" + files).output);
    ASSERT_EQ(theirs.size(), ours.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      for (const json& score : ours[i].at("scores")) {
        const size_t label = score.at("class") == "blue" ? 0 : 1;
        EXPECT_NEAR(theirs[i][label].get<double>(), score.at("probability").get<double>(), most)
            << ours[i].at("path") << " " << GetParam();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Preparations, DynamicSize,
    testing::Values("", "--data-option resize=12", "--data-option fit=pad",
                    "--data-option fit=squash --data-option resize=10",
                    "--data-option resize=11 --data-option interpolation=bicubic",
                    "--data-option resize=12 --data-option resampling=pillow --pixels bytes",
                    "--data-option fit=pad --data-option mean=120 --data-option scale=0.01"),
    [](const auto& one) { return fmt::format("Preparation{}", one.index); });

TEST_F(Export, RefusesVersionsThatCannotBeAndPicturesThatAreTooSmall) {
  train("tiny.prototxt");
  EXPECT_THAT(desk_.refusal("export --run run --opset 12 net.onnx"), HasSubstr("--opset"));
  EXPECT_THAT(desk_.refusal("export --run run --opset 17 --dynamic-size net.onnx"),
              HasSubstr("averages from opset 18 on"));
  EXPECT_THAT(desk_.refusal("export --run run --preprocess 1x40 net.onnx"),
              HasSubstr("the net sees 8x8 pixels"));
  EXPECT_THAT(desk_.refusal("export --run run --preprocess 20x40 --dynamic-size net.onnx"),
              HasSubstr("give one"));
  EXPECT_THAT(desk_.refusal("export --run run --dynamic-size weights.safetensors"),
              HasSubstr("are for ONNX files"));
  expect_no_file_like("net.onnx");
}

}  // namespace
}  // namespace tandem
