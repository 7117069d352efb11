// What a net sees of its images: said in one line, recorded, and equal to the pixels.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

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

// num 1, channels 3, height 2, width 1, and the values.
std::string binaryproto(const std::vector<float>& values) {
  std::string file("\x08\x01\x10\x03\x18\x02\x20\x01\x2a", 9);
  file += static_cast<char>(4 * values.size());
  file.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  return file;
}

TEST_F(ImagesLine, TellsTheMeansOfAMeanFile) {
  desk_.write("mean.binaryproto", binaryproto({10, 20, 30, 40, 50, 60}));
  const std::string layer = layer_of("Data",
                                     "transform_param { crop_size: 8 mean_file: "
                                     "\"mean.binaryproto\" } data_param { batch_size: 2 }");
  const Told found = train(layer);
  EXPECT_THAT(found.log, HasSubstr("mean_file 'mean.binaryproto': its mean of each channel"));
  EXPECT_THAT(found.line, HasSubstr("mean 15,35,55 (b,g,r)"));
  EXPECT_EQ(found.parameters.at("mean"), "15,35,55");
  std::filesystem::remove(desk_ / "mean.binaryproto");
  EXPECT_THAT(
      train(layer).log,
      AllOf(HasSubstr("mean_file 'mean.binaryproto' does not exist: the channel means of the "
                      "training data are subtracted instead")));
  for (const std::string& bad :
       {std::string("no mean at all"), binaryproto({1, 2}), binaryproto({NAN, 2, 3, 4, 5, 6})}) {
    desk_.write("mean.binaryproto", bad);
    EXPECT_THAT(desk_.refusal("train --data pictures --net net.prototxt --steps 1 --out bad"),
                HasSubstr("mean.binaryproto'"));
  }
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
