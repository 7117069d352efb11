// What a net sees of its images: said in one line, recorded, and equal to the pixels.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/mean_image_file.h"

namespace tandem::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The line, and the parameters that the run keeps.
struct Told {
  std::string line, log;
  json parameters;
};

class ImagesLine : public testing::Test {
 protected:
  void SetUp() override { desk_.draw_two_classes("pictures"); }

  // Of a net with the tiny one's layers and this data layer.
  Told train(const std::string& data_layer, const std::string& options = "") {
    const std::string tiny = tiny_net();
    desk_.write("net.prototxt", data_layer + tiny.substr(tiny.find("layer {\n  name: \"conv1\"")));
    return told("--net net.prototxt " + options);
  }

  Told told(const std::string& options) {
    std::filesystem::remove_all(desk_ / "run");
    const Outcome outcome =
        desk_.tandem("train --data pictures --steps 1 --batch 2 --out run " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    const std::string log = outcome.output + outcome.errors;
    const size_t begin = log.find("\nimages: ") + 1;
    EXPECT_EQ(log.find("\nimages: ", begin), std::string::npos) << "one line";
    return {begin == 0 ? "" : log.substr(begin, log.find('\n', begin) - begin), log,
            json::parse(desk_.read("run/run.json")).at("data_parameters")};
  }

  static std::string layer_of(const std::string& type, const std::string& blocks) {
    return "layer { name: \"data\" type: \"" + type + "\" top: \"data\" top: \"label\" " + blocks +
           " }\n";
  }

  Desk desk_;
};

TEST_F(ImagesLine, TellsTheSizeTheChannelsTheMeanAndTheScale) {
  const Told told = train(layer_of(
      "Data",
      "transform_param { crop_size: 8 scale: 0.5 mean_value: 3 } data_param { batch_size: 2 }"));
  EXPECT_EQ(told.line,
            "images: b,g,r, resized to 9 (bilinear) and cropped to 8, mean 3 (b,g,r), scale 0.5");
  EXPECT_EQ(told.parameters.at("resize"), "9");
}

TEST_F(ImagesLine, TellsThatImageDataStretches) {
  const Told told = train(
      layer_of("ImageData", "image_data_param { new_height: 8 new_width: 12 batch_size: 2 }"));
  EXPECT_THAT(told.line, HasSubstr("squashed to 8x12 (bilinear)"));
  EXPECT_EQ(told.parameters.at("fit"), "squash");
}

// All images are 10x10.
TEST_F(ImagesLine, TellsThatImagesOfAboutTheSizeOfTheCropAreNotResized) {
  const Told told =
      train(layer_of("Data", "transform_param { crop_size: 10 } data_param { batch_size: 2 }"));
  EXPECT_THAT(told.line, HasSubstr("resized to 10 (bilinear) and cropped to 10"));
  EXPECT_EQ(told.parameters.at("resize"), "10");
}

TEST_F(ImagesLine, TellsWhatAnImageSizeAndAFitMakeOfIt) {
  const Told size = told("--net tiny.prototxt --image-size 9");
  EXPECT_THAT(size.line, HasSubstr("resized to 10 (bilinear) and cropped to 9"));
  EXPECT_EQ(size.parameters.at("resize"), "10");
  const Told pad = told("--net tiny.prototxt --data-option fit=pad");
  EXPECT_THAT(pad.line, HasSubstr("fitted into 8 (bilinear) between bars of the mean"));
  EXPECT_FALSE(pad.parameters.contains("resize"));  // which the crop implies
  const Told given = told(
      "--net tiny.prototxt --data-option fit=squash --data-option resize=9 --data-option mirror=1");
  EXPECT_THAT(given.line, AllOf(HasSubstr("squashed to 9 (bilinear) and cropped to 8"),
                                HasSubstr("in training also mirror")));
}

// 10x10 pixels of these means.
std::string binaryproto(const std::vector<float>& channels) {
  std::vector<float> values;
  for (const float one : channels) values.insert(values.end(), 100, one);
  return mean_image_file(static_cast<int64_t>(channels.size()), 10, 10, values);
}

std::string layer_with_mean() {
  return "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" transform_param { "
         "crop_size: 8 mean_file: \"mean.binaryproto\" } data_param { batch_size: 2 } }\n";
}

TEST_F(ImagesLine, TellsThatAMeanFileIsTakenFromEachPixel) {
  desk_.write("mean.binaryproto", binaryproto({15, 35, 55}));
  const Told found = train(layer_with_mean());
  EXPECT_THAT(found.log, HasSubstr("mean_file 'mean.binaryproto': the mean of each pixel is "
                                   "subtracted; images are squashed to its size, 10x10"));
  EXPECT_EQ(found.line,
            "images: b,g,r, squashed to 10 (bilinear) and cropped to 8, a mean of each pixel, "
            "about 15,35,55 (b,g,r), scale 1");
  EXPECT_EQ(found.parameters.at("mean"), "15,35,55");
  EXPECT_EQ(found.parameters.at("mean_image"), "mean_image.binaryproto");
  for (const char* elsewhere : {"C:\\caffe\\new\\mean.binaryproto", "/home/x/mean.binaryproto"}) {
    const std::string layer = test::replaced(layer_with_mean(), "mean.binaryproto", elsewhere);
    EXPECT_EQ(train(layer).line, found.line) << elsewhere;
  }
  const Told given = train(layer_with_mean(), "--data-option mean=1,2,3");
  EXPECT_THAT(given.line, HasSubstr("mean 1,2,3 (b,g,r)"));
  EXPECT_THAT(given.log, Not(HasSubstr("mean_file")));
  std::filesystem::remove(desk_ / "mean.binaryproto");
  EXPECT_THAT(
      train(layer_with_mean()).log,
      AllOf(HasSubstr("mean_file 'mean.binaryproto' does not exist: the channel means of the "
                      "training data are subtracted instead")));
  for (const std::string& bad :
       {std::string("no mean at all"), binaryproto({1, 2}), binaryproto({NAN, 2, 3})}) {
    desk_.write("mean.binaryproto", bad);
    EXPECT_THAT(desk_.refusal("train --data pictures --net net.prototxt --steps 1 --out bad"),
                HasSubstr("mean.binaryproto'"));
  }
}

TEST_F(ImagesLine, OfARunWithAMeanFileNeedsTheFileNoMore) {
  desk_.write("mean.binaryproto", binaryproto({15, 35, 55}));
  const Told trained = train(layer_with_mean());
  std::filesystem::remove(desk_ / "mean.binaryproto");
  std::filesystem::rename(desk_ / "run", desk_ / "moved");
  const Outcome predicted = desk_.tandem("predict --run moved pictures/val/red/1.ppm");
  EXPECT_EQ(predicted.code, 0) << predicted.errors;
  EXPECT_EQ(predicted.errors, trained.line + "\n");
  EXPECT_THAT(desk_.tandem("test --run moved").output, HasSubstr(trained.line));
  EXPECT_THAT(desk_.tandem("test --run moved --no-report --data-option mean=1").output,
              HasSubstr("mean 1 (b,g,r)"));
  EXPECT_EQ(desk_.tandem("train --resume --out moved --steps 2").code, 0);
  const Outcome next =
      desk_.tandem("train --data pictures --weights moved --steps 1 --batch 2 --out next");
  EXPECT_EQ(next.code, 0) << next.errors;
  EXPECT_THAT(next.output + next.errors, HasSubstr("a mean of each pixel, about 15,35,55"));
  EXPECT_TRUE(std::filesystem::exists(desk_ / "next/mean_image.binaryproto"));
}

TEST_F(ImagesLine, OfAnExportSaysWhereTheMeanOfEachPixelIs) {
  desk_.write("mean.binaryproto", binaryproto({15, 35, 55}));
  (void)train(layer_with_mean());
  EXPECT_THAT(desk_.tandem("export --run run plain.onnx").output,
              HasSubstr("with the mean of each pixel, 'run/mean_image.binaryproto' (--preprocess"));
  EXPECT_THAT(desk_.tandem("export --run run --preprocess 12x12 whole.onnx").output,
              HasSubstr("the model takes the mean of each pixel away"));
}

TEST_F(ImagesLine, OfTestsAndPredictionsIsThatOfTheTraining) {
  const Told trained = told("--net tiny.prototxt --data-option fit=pad --data-option mirror=1");
  const Outcome tested = desk_.tandem("test --run run --no-report");
  EXPECT_THAT(tested.output, HasSubstr(trained.line + "\n"));
  const Outcome predicted = desk_.tandem("predict --run run pictures/val/red/1.ppm");
  EXPECT_EQ(predicted.errors, trained.line + "\n");
  const Outcome other = desk_.tandem("test --run run --no-report --data-option scale=0.5");
  EXPECT_THAT(other.output, HasSubstr("scale 0.5"));
}

TEST_F(ImagesLine, IsThatOfThePreview) {
  const Outcome outcome =
      desk_.tandem("data pictures --net tiny.prototxt --preview seen.png --data-option fit=squash");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("images: b,g,r, squashed to 8 (bilinear)"));
}

}  // namespace
}  // namespace tandem::test
