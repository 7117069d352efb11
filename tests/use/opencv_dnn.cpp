#include "tests/use/opencv_dnn.h"

#include "core/base/error.h"
#ifdef TANDEM_TEST_OPENCV_DNN
#include <opencv2/dnn.hpp>
#endif

namespace tandem::test {

#ifdef TANDEM_TEST_OPENCV_DNN
const char* why_no_opencv_dnn() {
  return nullptr;
}

std::vector<float> run_by_opencv(const std::filesystem::path& file, const std::vector<float>& rows,
                                 const Shape& shape) {
  cv::dnn::Net net = cv::dnn::readNetFromONNX(file.string());
  net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
  net.setPreferableTarget(cv::dnn::DNN_TARGET_CPU);
#if CV_VERSION_MAJOR > 4 || CV_VERSION_MINOR >= 7
  net.enableWinograd(false);  // the difference to be found is that of the model
#endif
  const int sizes[] = {static_cast<int>(shape.n), static_cast<int>(shape.c),
                       static_cast<int>(shape.h), static_cast<int>(shape.w)};
  // OpenCV does not write to it.
  net.setInput(cv::Mat(4, sizes, CV_32F, const_cast<float*>(rows.data())));
  const cv::Mat result = net.forward();
  if (!result.isContinuous()) throw Error("the output of OpenCV's net has gaps");
  const auto* values = result.ptr<float>();
  return {values, values + result.total()};
}
#else
const char* why_no_opencv_dnn() {
  return "built without OpenCV's DNN module (Debian: libopencv-dnn-dev)";
}

std::vector<float> run_by_opencv(const std::filesystem::path& /*file*/,
                                 const std::vector<float>& /*rows*/, const Shape& /*shape*/) {
  throw Error(why_no_opencv_dnn());
}
#endif

}  // namespace tandem::test
