// `tandem predict` on videos, which the test writes as Motion JPEG in AVI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#ifdef TANDEM_TEST_VIDEO
#include <opencv2/videoio.hpp>
#endif

#include "tests/cli/program.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class Videos : public testing::Test {
 protected:
  void SetUp() override {
    desk_.draw_two_classes("images");
    const Outcome trained = desk_.tandem(
        "train --net tiny.prototxt --data images --devices cpu:1 --lr 0.01 --steps 40 --out run");
    ASSERT_EQ(trained.code, 0) << trained.errors;
  }
#ifdef TANDEM_TEST_VIDEO
  // A second of red, then a second of blue, 10 frames each.
  void write_clip() {
    const cv::Size size(32, 24);
    cv::VideoWriter writer((desk_ / "clip.avi").string(), cv::CAP_OPENCV_MJPEG,
                           cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), 10, size);
    ASSERT_TRUE(writer.isOpened());
    for (int i = 0; i < 20; ++i) {
      writer.write(
          cv::Mat(size, CV_8UC3, i < 10 ? cv::Scalar(40, 40, 200) : cv::Scalar(200, 40, 40)));
    }
  }
#else
  void write_clip() {
    GTEST_SKIP() << "built without OpenCV's module videoio (Debian: libopencv-videoio-dev)";
  }
#endif
  void cut_clip() {
    const std::string bytes = desk_.read("clip.avi");
    desk_.write("clip.avi", bytes.substr(0, bytes.size() / 2));
  }

  Desk desk_;
};

TEST_F(Videos, AFrameOfEachSecondIsNamed) {
  ASSERT_NO_FATAL_FAILURE(write_clip());
  if (IsSkipped()) return;
  const Outcome outcome = desk_.tandem("predict --run run --top 1 images/val/red/1.ppm clip.avi");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(StartsWith("images/val/red/1.ppm: red "), HasSubstr("\nclip.avi 0:00.0: red "),
                    HasSubstr("\nclip.avi 0:01.0: blue ")));
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Videos, EveryIsTheTimeBetweenFrames) {
  ASSERT_NO_FATAL_FAILURE(write_clip());
  if (IsSkipped()) return;
  const auto seconds = [&](const std::string& every) {
    const Outcome outcome = desk_.tandem("predict --run run --json clip.avi --every " + every);
    std::vector<double> times;
    for (const json& one : json::parse(outcome.output)) times.push_back(one.at("seconds"));
    return times;
  };
  EXPECT_THAT(seconds("0.5"), ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_EQ(seconds("0").size(), 20u);
}

TEST_F(Videos, ACutOneIsNamedAfterItsFrames) {
  ASSERT_NO_FATAL_FAILURE(write_clip());
  if (IsSkipped()) return;
  cut_clip();
  const Outcome outcome = desk_.tandem("predict --run run --top 1 clip.avi");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output,
              AllOf(StartsWith("clip.avi 0:00.0: red "),
                    HasSubstr("\nclip.avi: not used: its end, because it is cut or damaged")));
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Videos, WhatIsNoVideoIsALineWithItsReason) {
  desk_.write("noise.mp4", std::string(3000, '\x5a'));
  const Outcome outcome = desk_.tandem("predict --run run noise.mp4 images/val/red/1.ppm");
  EXPECT_EQ(outcome.code, 1);
#ifdef TANDEM_TEST_VIDEO
  const char* reason = "OpenCV cannot read it as a video";
#else
  const char* reason = "Tandem was built without a library that reads videos";
#endif
  EXPECT_THAT(outcome.output, AllOf(StartsWith(std::string("noise.mp4: not used: ") + reason),
                                    HasSubstr("\nimages/val/red/1.ppm: red ")));
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Videos, AreRefusedWhereTheyMakeNoSense) {
  desk_.write("clip.mp4", "");
  EXPECT_THAT(desk_.refusal("predict --run run clip.mp4 --explain why"),
              HasSubstr("--explain draws images, and 'clip.mp4' is a video"));
  EXPECT_THAT(desk_.refusal("predict --run run clip.mp4 --every -1"), HasSubstr("--every -1: "));
  EXPECT_THAT(desk_.refusal("predict --run run gone.mp4"), HasSubstr("'gone.mp4' does not exist"));
}

}  // namespace
}  // namespace tandem
