// A net read from an ONNX file gives the scores of ONNX Runtime, for files of both of PyTorch's
// exporters and of another program's habits; what cannot be used is refused in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "core/base/error.h"
#include "core/formats/onnx/export.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/file.h"
#include "core/formats/onnx_reader/reader.h"
#include "core/model/net/initial_weights.h"
#include "core/model/passes/build_net.h"
#include "core/run/weights/pretrained.h"
#include "core/session/net_runner.h"
#include "tests/support/folders.h"
#include "tests/support/temp_folder.h"
#include "tests/use/onnx_bytes.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using namespace onnx_bytes;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

fs::path stored(const std::string& name) {
  return source_folder() / "tests/reference/onnx" / (name + ".onnx");
}

// The net of a file, made ready on one device.
class Imported {
 public:
  explicit Imported(const fs::path& file) : onnx_(import_onnx(file, no_std)) {
    SessionOptions options;
    options.batch = 2;
    options.data = onnx_.net.input_shape();
    options.training = false;
    session_.emplace(registry_, onnx_.net, options);
    const Net& net = session_->testing().net;
    weights_ = initial_weights(net, 1);
    const Pretrained report = copy_arrays(onnx_.arrays, file, net, &weights_);
    EXPECT_TRUE(report.missing.empty()) << report.missing.front();
    EXPECT_TRUE(report.unused.empty()) << report.unused.front();
    session_->set_weights(weights_);
  }

  // Of two equal rows of the images that tests/reference/make_onnx_nets.py describes.
  std::vector<float> scores() {
    NetRunner runner(*session_);
    const auto elements = static_cast<size_t>(runner.row_elements());
    std::vector<float> rows(2 * elements);
    for (size_t i = 0; i < elements; ++i) {
      rows[i] = rows[elements + i] = static_cast<float>(static_cast<double>(37 * i % 101) / 50 - 1);
    }
    std::vector<float> scores(2 * static_cast<size_t>(runner.classes()));
    runner.run(rows.data(), 2, scores.data());
    return scores;
  }

  [[nodiscard]] OnnxModel exported() const {
    NetOptions plain;
    plain.phase = TANDEM_TEST;
    plain.data = onnx_.net.input_shape();
    plain.device_kind = "";
    return make_onnx(build_net(onnx_.net, registry_, plain), weights_, {}, {});
  }
  [[nodiscard]] const OnnxImport& onnx() const { return onnx_; }

 private:
  Registry registry_ = Registry::with_defaults();
  OnnxImport onnx_;
  std::optional<Session> session_;
  std::vector<float> weights_;
};

std::vector<float> centered(std::vector<float> scores) {
  const float mean =
      std::accumulate(scores.begin(), scores.end(), 0.0F) / static_cast<float>(scores.size());
  for (float& score : scores) score -= mean;
  return scores;
}

std::vector<float> stored_scores(const std::string& name) {
  std::istringstream lines(read_text(source_folder() / "tests/reference/onnx/scores.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first != name) continue;
    std::vector<float> values;
    for (float value = 0; words >> value;) values.push_back(value);
    return values;
  }
  ADD_FAILURE() << "no scores of " << name;
  return {};
}

void expect_scores(const std::vector<float>& found, const std::vector<float>& right) {
  ASSERT_EQ(found.size(), 2 * right.size());
  const std::vector<float> expected = centered(right);
  float largest = 0;
  for (const float score : expected) largest = std::max(largest, std::abs(score));
  for (size_t row = 0; row < 2; ++row) {
    const auto begin = found.begin() + static_cast<int64_t>(row * right.size());
    const std::vector<float> ours = centered({begin, begin + static_cast<int64_t>(right.size())});
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_NEAR(ours[i], expected[i], 1e-5F * largest) << "row " << row << ", class " << i;
    }
  }
}

class StoredNets : public testing::TestWithParam<const char*> {};

TEST_P(StoredNets, GiveTheScoresOfOnnxRuntime) {
  expect_scores(Imported(stored(GetParam())).scores(), stored_scores(GetParam()));
}

TEST_P(StoredNets, GiveTheSameScoresAfterAnExport) {
  const std::string name = GetParam();
  const TempFolder folder;
  const fs::path file = folder.write("again.onnx", Imported(stored(name)).exported().bytes);
  // An export divides by the deviations itself, which are ones here.
  expect_scores(Imported(file).scores(), stored_scores(name));
}

INSTANTIATE_TEST_SUITE_P(All, StoredNets,
                         testing::Values("channels_last", "forms_layers", "forms_new", "forms_old",
                                         "mobile_fused", "mobile_new", "mobile_old", "plain_new",
                                         "plain_old", "plain_opset7", "plain_training",
                                         "shuffle_new", "shuffle_old", "tokens_casts",
                                         "tokens_fused", "tokens_new", "tokens_old", "windows_new",
                                         "windows_old"),
                         [](const auto& info) { return std::string(info.param); });

TEST(OnnxNets, LayersHaveTheNamesOfTheFilesParameters) {
  const OnnxImport onnx = import_onnx(stored("plain_training"), no_std);
  for (const char* name : {"conv1.weight", "bn1.mean", "bn1.weight", "conv2.bias", "fc.weight"}) {
    EXPECT_TRUE(onnx.arrays.arrays.contains(name)) << name;
  }
}

TEST(OnnxNets, AFileWithoutBatchNormSaysHowToExportIt) {
  const auto is_advice = [](const std::string& note) {
    return note.find("training=TrainingMode.PRESERVE") != std::string::npos;
  };
  const OnnxImport folded = import_onnx(stored("mobile_old"), no_std);
  EXPECT_TRUE(std::any_of(folded.notes.begin(), folded.notes.end(), is_advice));
  const OnnxImport kept = import_onnx(stored("plain_training"), no_std);
  EXPECT_FALSE(std::any_of(kept.notes.begin(), kept.notes.end(), is_advice));
}

// ---- files that cannot be used

std::string refusal_of(const std::string& bytes) {
  const TempFolder folder;
  for (const char* name : {"inside/values.bin", "outside.bin"}) {
    EXPECT_TRUE(fs::exists(folder.write(name, std::string(16, '\0'))));
  }
  const fs::path file = folder.write("inside/net.onnx", bytes);
  fs::create_symlink("../outside.bin", folder.path() / "inside/link.bin");
  try {
    (void)import_onnx(file, no_std);
  } catch (const Error& failure) {
    EXPECT_EQ(std::string(failure.what()).find('\n'), std::string::npos);
    return failure.what();
  }
  return "";
}

TEST(OnnxFiles, ACycleIsRefused) {
  const std::string graph =
      image("x") + node("Add", {"x", "b"}, "a") + node("Relu", {"a"}, "b") + output("b");
  EXPECT_THAT(refusal_of(model(graph)),
              HasSubstr("node 'b' (Relu) reads 'a', which depends on what it makes (a cycle)"));
}

TEST(OnnxFiles, AMissingTensorIsNamed) {
  const std::string graph = image("x") + node("Conv", {"x", "weight"}, "y") + output("y");
  EXPECT_THAT(refusal_of(model(graph)), HasSubstr("node 'y' (Conv) reads 'weight', which is"));
}

TEST(OnnxFiles, AShapeOfTooManyValuesTakesNoMemory) {
  const std::string graph =
      image("x") + tensor("weight", {uint64_t{1} << 60U, uint64_t{1} << 60U}, field(9, "")) +
      node("Conv", {"x", "weight"}, "y") + output("y");
  EXPECT_THAT(refusal_of(model(graph)), HasSubstr("'weight' is said to be 1152921504606846976x"));
  const std::string few =
      image("x") + tensor("weight", {1000, 1000}, field(9, "abcd")) + output("x");
  EXPECT_THAT(refusal_of(model(few)), HasSubstr("'weight' is 1000x1000, but has 1 values"));
}

TEST(OnnxFiles, ValuesOutsideTheFoldersFileAreNotRead) {
  const auto with = [](const std::string& location) {
    return refusal_of(
        model(image("x") + tensor("weight", {4}, in_another_file(location)) + output("x")));
  };
  EXPECT_THAT(with("../outside.bin"), HasSubstr("is outside the folder of the ONNX file"));
  EXPECT_THAT(with("/etc/passwd"), HasSubstr("is outside the folder of the ONNX file"));
  EXPECT_THAT(with("link.bin"), HasSubstr("leads outside the folder of the ONNX file"));
  EXPECT_THAT(with("absent.bin"), HasSubstr("which does not exist"));
  EXPECT_THAT(with("values.bin"), Not(HasSubstr("values.bin")));
}

TEST(OnnxFiles, AllNodesWithoutALayerAreNamedAtOnce) {
  const std::string graph = image("x") + node("NonZero", {"x"}, "a") + node("Relu", {"a"}, "b") +
                            node("NonZero", {"b"}, "c") + node("Det", {"c"}, "d") + output("d");
  EXPECT_THAT(refusal_of(model(graph)),
              AllOf(HasSubstr("has 3 nodes without a layer here"),
                    HasSubstr("node 'a' (NonZero): Tandem has no layer for it (and 1 more"),
                    HasSubstr("node 'd' (Det)")));
}

TEST(OnnxFiles, WhatWouldBeComputedOtherwiseIsRefused) {
  const auto refusal = [](const std::string& constants, const std::string& nodes,
                          uint64_t opset = 18) {
    return refusal_of(model(image("x") + constants + nodes + output("y"), opset));
  };
  const std::string scales = floats("scales", {1, 1, 3, 3});
  const auto resize = [&](const std::string& attributes) {
    return refusal(scales, node("Resize", {"x", "", "scales"}, "y", attributes));
  };
  EXPECT_THAT(resize(word("coordinate_transformation_mode", "tf_crop_and_resize")),
              HasSubstr("node 'y' (Resize): mode nearest by factors of 3 and 3 with the places "
                        "tf_crop_and_resize (round_prefer_floor) is not read"));
  EXPECT_THAT(resize(word("mode", "lanczos")), HasSubstr("(Resize): mode lanczos"));
  EXPECT_THAT(refusal(floats("scales", {1, 1, 0.5F, 0.5F}),
                      node("Resize", {"x", "", "scales"}, "y",
                           word("mode", "linear") + integer("antialias", 1))),
              HasSubstr("and antialias is not read"));
  EXPECT_THAT(refusal(floats("w", {1, 2, 3}),
                      node("BatchNormalization", {"x", "w", "w", "w", "w"}, "y",
                           attribute("spatial", 2, "")),
                      8),
              HasSubstr("node 'y' (BatchNormalization): spatial 0 is not read"));
  EXPECT_THAT(refusal("", node("Cast", {"x"}, "y", integer("to", 7))),
              HasSubstr("node 'y' (Cast): it makes whole numbers"));
  EXPECT_THAT(refusal(floats("slope", {1, 2}), node("PRelu", {"x", "slope"}, "y")),
              HasSubstr("node 'y' (PRelu): it needs one slope, or one for each channel"));
  const std::string volume = tensor("w", {1, 1, 2, 2, 2}, field(9, std::string(32, '\0')));
  EXPECT_THAT(refusal(volume + field(5, number(1, 5) + number(2, 7) + field(8, "shape") +
                                            field(9, std::string("\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
                                                                 "\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
                                                                 "\4\0\0\0\0\0\0\0",
                                                                 40))),
                      node("Reshape", {"x", "shape"}, "v") + node("Conv", {"v", "w"}, "y")),
              HasSubstr("node 'y' (Conv): its windows have 3 axes; two are read"));
}

TEST(OnnxFiles, ARefusalNamesTheFileAndTheNodeOnce) {
  const std::string three = floats("a", {1, 2, 3});
  EXPECT_THAT(
      refusal_of(model(image("x") + three + node("Concat", {"x", "x"}, "y", integer("axis", 7)) +
                       output("y"))),
      EndsWith("inside/net.onnx' has 1 node without a layer here: node 'y' (Concat): axis 7 "
               "does not exist, its input has 4 axes"));
  EXPECT_THAT(
      refusal_of(model(image("x") + three + node("Concat", {"a", "a"}, "b", integer("axis", 7)) +
                       node("Add", {"x", "b"}, "y") + output("y"))),
      EndsWith("inside/net.onnx' cannot be used: node 'b' (Concat): axis 7 does not exist, "
               "its input has 1 axes"));
}

TEST(OnnxFiles, AScatterThatAddsIsRefused) {
  const std::string at = field(
      5, number(1, 1) + number(1, 1) + number(2, 7) + field(8, "at") + field(9, std::string(8, 0)));
  const auto refusal = [&](const std::string& attributes) {
    return refusal_of(model(image("x") + floats("a", {1, 2, 3, 4}) + floats("one", {1}) + at +
                            node("ScatterND", {"a", "at", "one"}, "b", attributes) +
                            node("Mul", {"x", "b"}, "c") + node("Flatten", {"c"}, "y") +
                            output("y")));
  };
  EXPECT_THAT(refusal(word("reduction", "add")),
              EndsWith("node 'b' (ScatterND): reduction add is not read"));
  EXPECT_EQ(refusal(word("reduction", "none")), "");
  EXPECT_EQ(refusal(""), "");
}

TEST(OnnxFiles, AZeroThatAWriterLeavesOutIsRead) {
  // keepdims is 0: an integer without a value. The mean then has one axis.
  const std::string reduced = node("ReduceMean", {"x", "axes"}, "a", attribute("keepdims", 2, "")) +
                              node("Flatten", {"a"}, "y", attribute("axis", 2, ""));
  const std::string axes =
      field(5, number(1, 2) + number(2, 7) + field(8, "axes") +
                   field(9, std::string("\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16)));
  const TempFolder folder;
  const fs::path file =
      folder.write("a.onnx", model(image("x") + axes + reduced + output("y"), 18));
  EXPECT_EQ(read_onnx_file(file).nodes.at(0).integer("keepdims", 1), 0);
  const OnnxImport onnx = import_onnx(file, no_std);
  EXPECT_EQ(onnx.net.input_shape().c, 3);
}

TEST(OnnxFiles, ImagesOfBytesAreGivenAsTheyAre) {
  const std::string graph = image("x", 2) + node("Cast", {"x"}, "a", integer("to", 1)) +
                            node("Flatten", {"a"}, "y") + output("y");
  const TempFolder folder;
  const OnnxImport onnx = import_onnx(folder.write("a.onnx", model(graph)), no_std);
  EXPECT_EQ(onnx.preparation, R"({"scale": 1, "channels": "rgb"})");
  EXPECT_FALSE(onnx.arrays.arrays.contains("std.weight"));
}

TEST(OnnxFiles, ThatPrepareImagesThemselvesAreGivenPlainPixels) {
  const TempFolder folder;
  const auto onnx_of = [&](const std::string& subtracts, float mean, float divisor) {
    const std::string graph = image("x") + floats("m", {mean}) + floats("d", {divisor}) +
                              node(subtracts, {"x", "m"}, "a") + node("Div", {"a", "d"}, "b") +
                              node("Flatten", {"b"}, "y") + output("y");
    return import_onnx(folder.write("a.onnx", model(graph)), std::nullopt);
  };
  const OnnxImport shares = onnx_of("Sub", 0.485F, 0.229F);
  EXPECT_EQ(shares.largest_pixel, 1);
  EXPECT_FALSE(shares.arrays.arrays.contains("std.weight"));
  EXPECT_THAT(shares.notes.at(0), HasSubstr("nothing else is taken from pixels of 0 to 1"));
  EXPECT_EQ(onnx_of("Sub", 127.5F, 127.5F).largest_pixel, 255);
  EXPECT_EQ(onnx_of("Sub", 0, 255).largest_pixel, 255);
  // A mean that no pixel has: the usual preparation, and a line.
  const OnnxImport unknown = onnx_of("Add", 3, 1);
  EXPECT_EQ(unknown.largest_pixel, 0);
  EXPECT_TRUE(unknown.arrays.arrays.contains("std.weight"));
  EXPECT_THAT(unknown.notes.at(0), HasSubstr("--data-option scale=X"));
}

TEST(OnnxFiles, AWeightOfTwoNodesIsSaidToBeCopied) {
  const auto notes = [](const std::string& second) {
    const std::string values(9 * sizeof(float), '\0');
    const std::string graph = image("x") + tensor("v", {3, 3, 1, 1}, field(9, values)) +
                              tensor("w", {3, 3, 1, 1}, field(9, values)) +
                              node("Conv", {"x", "w"}, "a") + node("Conv", {"a", second}, "b") +
                              node("Flatten", {"b"}, "y") + output("y");
    const TempFolder folder;
    return import_onnx(folder.write("a.onnx", model(graph)), no_std).notes;
  };
  const char* const line = "'w' is the weight of 2 nodes: each trains a copy of its own";
  EXPECT_THAT(notes("w"), testing::Contains(line));
  EXPECT_THAT(notes("v"), Not(testing::Contains(line)));
}

// As a large transformer does whose matrices are transposed by nodes.
TEST(OnnxFiles, ComputedConstantsMayTakeAFewTimesWhatTheFileHas) {
  auto million = std::make_shared<OnnxTensor>();
  million->floats.resize(size_t{1} << 20U);
  const auto times = [&](const OnnxFile& file) {
    OnnxBudget budget(file);
    for (int i = 0;; ++i) {
      try {
        budget.take(*million);
      } catch (const Error&) {
        return i;
      }
    }
  };
  EXPECT_EQ(times({}), 256);
  OnnxFile file;
  file.constants["weight"] = million;
  EXPECT_EQ(times(file), 256 + 4);
}

TEST(OnnxFiles, OldOpsetsAndOtherFilesAreRefused) {
  EXPECT_THAT(refusal_of(model(image("x") + output("x"), 6)), HasSubstr("it is of opset 6"));
  EXPECT_THAT(refusal_of("no model"), HasSubstr("it is no ONNX model, or damaged"));
  EXPECT_THAT(refusal_of(model(image("x") + node("Relu", {"x"}, "y") + output("y"))),
              HasSubstr("a net here gives a row of class scores"));
}

}  // namespace
}  // namespace tandem::test
