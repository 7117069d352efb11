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
  const auto seconds = [&](const std::string& every, const std::string& reader = "") {
    const Outcome outcome =
        desk_.tandem("predict --run run --json clip.avi --every " + every, reader);
    std::vector<double> times;
    for (const json& one : json::parse(outcome.output)) times.push_back(one.at("seconds"));
    return times;
  };
  EXPECT_THAT(seconds("0.5"), ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_THAT(seconds("0.5", "OPENCV_VIDEOIO_PRIORITY_FFMPEG=0"), ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_EQ(seconds("0").size(), 20u);
  EXPECT_EQ(seconds("1e-9").size(), 20u);
}

TEST_F(Videos, OneThatEndsBeforeItsFirstFrameIsALineWithItsReason) {
  ASSERT_NO_FATAL_FAILURE(write_clip());
  if (IsSkipped()) return;
  const std::string bytes = desk_.read("clip.avi");
  desk_.write("clip.avi", bytes.substr(0, bytes.find("movi") + 4));
  const Outcome outcome = desk_.tandem("predict --run run clip.avi");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, StartsWith("clip.avi: not used: "));
}

// OpenCV's own reader of AVI, which is not used where ffmpeg is, wrote a line with bytes of the
// file.
TEST_F(Videos, OneWithADamagedHeaderIsALineWithItsReason) {
  ASSERT_NO_FATAL_FAILURE(write_clip());
  if (IsSkipped()) return;
  desk_.write("clip.avi", test::replaced(desk_.read("clip.avi"), "LIST", "\x1b[3m"));
  const Outcome outcome = desk_.tandem("predict --run run clip.avi");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, StartsWith("clip.avi: not used: OpenCV cannot read it as a video"));
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Videos, WhatIsNoVideoIsALineWithItsReason) {
  desk_.write("noise.mp4", std::string("\0\0\0\x18", 4) + "ftypmp42" + std::string(3000, '\x5a'));
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

TEST_F(Videos, AListOfFilesIsNone) {
  desk_.write("list.mp4", "ffconcat version 1.0\nfile clip.avi\n");
  const Outcome outcome = desk_.tandem("predict --run run list.mp4");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output,
              StartsWith("list.mp4: not used: not a video that is read here (MP4,"));
}

TEST_F(Videos, AreRefusedWhereTheyMakeNoSense) {
  desk_.write("clip.mp4", "");
  EXPECT_THAT(desk_.refusal("predict --run run clip.mp4 --explain why"),
              HasSubstr("--explain draws images, and 'clip.mp4' is a video"));
  EXPECT_THAT(desk_.refusal("predict --run run clip.mp4 --every 1e6"),
              HasSubstr("--every 1e6: seconds, from 0 (every frame) to below 1000000"));
  EXPECT_THAT(desk_.refusal("predict --run run gone.mp4"), HasSubstr("'gone.mp4' does not exist"));
  EXPECT_THAT(desk_.tandem("predict --run run clip.mp4 gone.jpg").output, IsEmpty());
}

TEST_F(Videos, AFolderWithTheNameOfOneIsAFolderOfImages) {
  desk_.draw("reds.mp4", 1, 200, 40, 40);
  const Outcome outcome = desk_.tandem("predict --run run --top 1 --explain why reds.mp4");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, StartsWith("reds.mp4/1.ppm: red "));
}

}  // namespace
}  // namespace tandem
