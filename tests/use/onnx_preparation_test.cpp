// What is said of an ONNX file's images and outputs, beside the file or in it, is done as it is
// said: the parameters of the data set and the deviations by which the net divides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/formats/onnx/graph.h"
#include "core/run/weights/published.h"
#include "tests/support/folders.h"
#include "tests/support/temp_folder.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The file reads three channels and has five scores.
std::string net_bytes() {
  return read_text(source_folder() / "tests/reference/onnx/plain_old.onnx");
}

class OnnxPreparation : public testing::Test {
 protected:
  // The file with such a file beside it; "": none.
  PublishedWeights read(const std::string& beside, const std::string& text,
                        const std::map<std::string, std::string>& metadata = {}) {
    folder_.emplace();
    const auto file = folder_->write("net.onnx", net_bytes() + OnnxGraph::metadata_bytes(metadata));
    if (!beside.empty()) (void)folder_->write(beside, text);
    return *find_published(file, "");
  }
  PublishedWeights processor(const std::string& text) {
    return read("preprocessor_config.json", text);
  }

 private:
  std::optional<TempFolder> folder_;
};

// "mean scale color fit interpolation resized/cropped 1/deviations", as (pixel - mean) scale / std.
std::string summary(const PublishedWeights& published) {
  const auto parameters = published.data_parameters();
  const auto of = [&](const char* name, const char* absent) {
    const auto found = parameters.find(name);
    return found == parameters.end() ? absent : found->second;
  };
  std::string deviations;
  for (const float factor : published.onnx->arrays.arrays.at("std.weight").values) {
    deviations += fmt::format(" {:.3g}", 1 / factor);
  }
  return fmt::format("{} {} {} {} {} {:.4g}{}", of("mean", "none"), of("scale", "1"),
                     of("color", "bgr"), of("fit", "crop"), of("interpolation", "bilinear"),
                     published.resized_side / published.crop_side, deviations);
}

const std::string half = R"("image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.25, 0.125])";

TEST_F(OnnxPreparation, EachFieldOfAProcessorOfHuggingFaceIsDone) {
  struct Row {
    std::string fields, right;
  };
  const std::vector<Row> rows{
      {half, "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1 0.5 0.25 0.125"},
      {half + R"(, "do_normalize": false)", "0,0,0 0.00392156863 rgb crop bilinear 1 1 1 1"},
      {half + R"(, "do_rescale": false)", "0.5,0.5,0.5 1 rgb crop bilinear 1 0.5 0.25 0.125"},
      {half + R"(, "rescale_factor": 0.0078125)",
       "64,64,64 0.0078125 rgb crop bilinear 1 0.5 0.25 0.125"},
      {half + R"(, "rescale_factor": 0.0078125, "rescale_offset": true, "do_normalize": false)",
       "128,128,128 0.0078125 rgb crop bilinear 1 1 1 1"},
      // Mean and deviation are of R, G, B; the net reads B, G, R.
      {R"("image_mean": [0.2, 0.4, 0.6], "image_std": [0.5, 0.25, 0.125],)"
       R"("do_flip_channel_order": true)",
       "153,102,51 0.00392156863 bgr crop bilinear 1 0.125 0.25 0.5"},
      {half + R"(, "resample": 3)",
       "127.5,127.5,127.5 0.00392156863 rgb crop bicubic 1 0.5 0.25 0.125"},
      {half + R"(, "size": {"height": 24, "width": 24})",
       "127.5,127.5,127.5 0.00392156863 rgb squash bilinear 1 0.5 0.25 0.125"},
      {half + R"(, "size": 24)",
       "127.5,127.5,127.5 0.00392156863 rgb squash bilinear 1 0.5 0.25 0.125"},
      {half + R"(, "size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224})",
       "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1.143 0.5 0.25 0.125"},
      {half + R"(, "size": 256, "crop_size": 224, "do_center_crop": true)",
       "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1.143 0.5 0.25 0.125"},
      {half + R"(, "size": {"height": 256, "width": 256}, "crop_size": 224)",
       "127.5,127.5,127.5 0.00392156863 rgb squash bilinear 1.143 0.5 0.25 0.125"},
      {half + R"(, "size": [24, 24], "do_center_crop": null, "crop_pct": null, "resample": null)",
       "127.5,127.5,127.5 0.00392156863 rgb squash bilinear 1 0.5 0.25 0.125"},
      // What classes of Hugging Face's do besides.
      {half + R"(, "size": 256, "crop_size": 224, "do_center_crop": true,)"
              R"("feature_extractor_type": "DeiTFeatureExtractor")",
       "127.5,127.5,127.5 0.00392156863 rgb squash bilinear 1.143 0.5 0.25 0.125"},
      {half + R"(, "size": {"shortest_edge": 224}, "crop_size": 224,)"
              R"("image_processor_type": "LevitImageProcessor")",
       "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1.143 0.5 0.25 0.125"},
      {half + R"(, "size": {"shortest_edge": 224}, "crop_size": 224, "crop_pct": 0.875,)"
              R"("image_processor_type": "PoolFormerImageProcessor")",
       "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1.143 0.5 0.25 0.125"},
      {half + R"(, "image_processor_type": "EfficientNetImageProcessor")",
       "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1 0.25 0.0625 0.0156"},
      {half + R"(, "image_processor_type": "EfficientNetImageProcessor", "include_top": false)",
       "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1 0.5 0.25 0.125"},
      {half + R"(, "size": {"shortest_edge": 224}, "crop_pct": 0.875)",
       "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1.143 0.5 0.25 0.125"},
      {half + R"(, "size": {"shortest_edge": 384}, "crop_pct": 0.875)",
       "127.5,127.5,127.5 0.00392156863 rgb squash bilinear 1 0.5 0.25 0.125"},
  };
  for (const Row& row : rows) {
    const PublishedWeights found = processor("{" + row.fields + "}");
    EXPECT_EQ(summary(found), row.right) << row.fields;
    EXPECT_THAT(found.preparation_source, HasSubstr("preprocessor_config.json"));
  }
}

TEST_F(OnnxPreparation, TheConfigOfTimmIsReadWhole) {
  const std::string fields =
      R"("mean": [0.1, 0.2, 0.3], "std": [0.5, 0.25, 0.125], "crop_pct": 0.8, "interpolation":)"
      R"( "bicubic", "crop_mode": "border")";
  for (const std::string& text : {"{" + fields + "}", R"({"pretrained_cfg": {)" + fields + "}}"}) {
    EXPECT_EQ(summary(read("config.json", text)),
              "76.5,51,25.5 0.00392156863 rgb pad bicubic 1.25 0.5 0.25 0.125");
  }
}

TEST_F(OnnxPreparation, AConfigOfAnotherProgramDoesNotStopTheFile) {
  for (const char* text : {R"({"mean": "fast"})", R"({"mean": 3, "std": 1})", "[1]", "{", "{}",
                           R"({"pretrained_cfg": null, "num_classes": 0})"}) {
    const PublishedWeights found = read("config.json", text);
    EXPECT_EQ(found.preparation_source, "") << text;
    EXPECT_EQ(summary(found),
              "103.53,116.28,123.675 0.00392156863 rgb crop bilinear 1.143 0.229 0.224 0.225");
  }
  // The file has its own number of classes and size of images.
  EXPECT_THAT(read("config.json", R"({"mean": [0.5], "num_classes": 0, "input_size": [1, 8, 9]})")
                  .preparation_source,
              HasSubstr("config.json"));
}

TEST_F(OnnxPreparation, WhatIsNotDoneIsNamed) {
  const auto notes = [&](const std::string& more) {
    return fmt::format("{}", fmt::join(processor("{" + half + more + "}").onnx->notes, "\n"));
  };
  EXPECT_THAT(notes(R"(, "resample": 1)"), HasSubstr("'lanczos', which is not supported"));
  EXPECT_THAT(notes(R"(, "do_pad": true)"), HasSubstr("'do_pad' is not done here"));
  EXPECT_THAT(notes(R"(, "do_resize": false)"), HasSubstr("'do_resize' false: images are resized"));
  EXPECT_THAT(notes(R"(, "size": {"longest_edge": 9})"), HasSubstr("it is not done"));
  EXPECT_THAT(notes(R"(, "size": 24, "do_resize": true)"), Not(HasSubstr("not")));
  EXPECT_THAT(processor(R"({"do_normalize": true})").onnx->notes.front(),
              HasSubstr("'image_mean' is missing: torchvision's is taken"));
}

TEST_F(OnnxPreparation, AValueThatDoesNotFitIsRefusedByItsField) {
  for (const char* field : {R"("size": "big")", R"("resample": 9)", R"("do_rescale": 1)",
                            R"("rescale_factor": 0)", R"("image_std": [0, 0, 0])"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    try {
      (void)processor(fmt::format(R"({{"do_normalize": true, {}}})", field));
      ADD_FAILURE() << field;
    } catch (const Error& refused) {
      EXPECT_THAT(refused.what(), HasSubstr("'" + name + "'"));
    }
  }
}

TEST_F(OnnxPreparation, NamesOfClassesComeFromTheConfigBesideTheFile) {
  EXPECT_THAT(read("config.json", R"({"id2label": {"1": "dog", "0": "cat"}})").onnx->class_names,
              ElementsAre("cat", "dog"));
  EXPECT_THAT(read("config.json", R"({"label_names": ["n1", "n2"], "label_descriptions":)"
                                  R"( {"n2": "a fish"}})")
                  .onnx->class_names,
              ElementsAre("n1", "a fish"));
  EXPECT_TRUE(read("config.json", R"({"id2label": {"7": "dog"}})").onnx->class_names.empty());
}

TEST_F(OnnxPreparation, TheFilesOwnMetadataIsDone) {
  const PublishedWeights windows = read(
      "", "",
      {{"Image.BitmapPixelFormat", "Bgr8"}, {"Image.NominalPixelRange", "NominalRange_0_255"}});
  EXPECT_EQ(summary(windows), "0,0,0 1 bgr crop bilinear 1.143 1 1 1");
  EXPECT_EQ(windows.preparation_source, "the file itself");
  EXPECT_EQ(summary(read("", "", {{"Image.NominalPixelRange", "Normalized_1_1"}})),
            "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1.143 0.5 0.5 0.5");
  const PublishedWeights ultralytics =
      read("", "", {{"author", "Ultralytics"}, {"names", R"({0: 'cat', 1: "d'or", 2: 'e\'l'})"}});
  EXPECT_EQ(summary(ultralytics), "0,0,0 0.00392156863 rgb crop bilinear 1 1 1 1");
  EXPECT_THAT(ultralytics.onnx->class_names, ElementsAre("cat", "d'or", "e'l"));
  // A user's file beside it comes first.
  EXPECT_EQ(
      summary(read("preprocessor_config.json", "{" + half + "}", {{"author", "Ultralytics"}})),
      "127.5,127.5,127.5 0.00392156863 rgb crop bilinear 1 0.5 0.25 0.125");
}

}  // namespace
}  // namespace tandem::test
