// Videos read by OpenCV's module videoio: by ffmpeg, or, in an OpenCV without it, Motion JPEG in
// AVI by OpenCV itself.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <opencv2/videoio.hpp>
#include <opencv2/videoio/registry.hpp>
#include <stdexcept>
#include <string>

#include "plugins/opencv/calls.h"
#include "plugins/video/reader.h"

namespace {

class Video {
 public:
  explicit Video(const char* path) {
    // Other backends take the path for a device, a network address or a pattern of file names.
    // OpenCV's own reader writes lines about damaged files to stderr, with bytes of theirs.
    const bool by_ffmpeg = cv::videoio_registry::hasBackend(cv::CAP_FFMPEG);
    if (!capture_.open(path, by_ffmpeg ? cv::CAP_FFMPEG : cv::CAP_OPENCV_MJPEG)) {
      throw std::runtime_error("OpenCV cannot read it as a video");
    }
    rate_ = capture_.get(cv::CAP_PROP_FPS);
    tells_times_ = by_ffmpeg;  // the other one tells those of the next frames
  }

  void read(double from, tandem_video_frame& frame) {
    constexpr double tolerance = 1e-3;  // times of files are in milliseconds or finer
    frame = {};
    while (capture_.grab()) {
      const double seconds = time_of_grabbed();
      ++grabbed_;
      if (seconds < from - tolerance) continue;
      if (!capture_.retrieve(pixels_) || pixels_.type() != CV_8UC3 || !pixels_.isContinuous()) {
        throw std::runtime_error("frame " + std::to_string(grabbed_) + " cannot be decoded");
      }
      for (unsigned char* at = pixels_.data; at != pixels_.dataend; at += 3)
        std::swap(at[0], at[2]);
      frame = {seconds, pixels_.rows, pixels_.cols, pixels_.data};
      return;
    }
    // Whether it is cut is not known: the number of frames in its header may be an estimate.
    if (grabbed_ == 0) throw std::runtime_error("none of its frames can be decoded");
  }

 private:
  double time_of_grabbed() {
    const double told = tells_times_ ? capture_.get(cv::CAP_PROP_POS_MSEC) / 1000 : -1;
    const double counted = rate_ > 0 ? static_cast<double>(grabbed_) / rate_ : 0;
    last_ = std::isfinite(told) && told >= last_ ? told : std::max(counted, last_);
    return last_;
  }

  cv::VideoCapture capture_;
  cv::Mat pixels_;
  double rate_ = 0, last_ = 0;
  bool tells_times_ = false;
  long grabbed_ = 0;
};

int32_t open(const char* path, void** video, char* reason, uint32_t reason_bytes) {
  return tandem::opencv::without_exceptions(reason, reason_bytes, [&] {
    tandem::opencv::silence();
    // Read when ffmpeg is used first: its lines about a damaged file, of which the reason is
    // enough.
    setenv("OPENCV_FFMPEG_LOGLEVEL", "-8", 0);
    *video = new Video(path);
  });
}

int32_t read(void* video, double from, tandem_video_frame* frame, char* reason,
             uint32_t reason_bytes) {
  return tandem::opencv::without_exceptions(
      reason, reason_bytes, [&] { static_cast<Video*>(video)->read(from, *frame); });
}

void close(void* video) {
  delete static_cast<Video*>(video);
}

constexpr tandem_video_reader reader{sizeof(tandem_video_reader), "OpenCV " CV_VERSION, &open,
                                     &read, &close};

}  // namespace

extern "C" __attribute__((visibility("default"))) const tandem_video_reader*
tandem_video_reader_entry() {
  return &reader;
}
