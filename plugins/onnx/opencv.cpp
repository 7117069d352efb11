// ONNX models run by OpenCV's DNN module.

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include <opencv2/dnn.hpp>
#include "plugins/onnx/runner.h"
#include "plugins/opencv/calls.h"

namespace {

void require_extents(const cv::Mat& result, int64_t rows, int64_t values) {
  if (static_cast<int64_t>(result.total()) == rows * values && result.isContinuous()) return;
  std::string extents;
  for (int i = 0; i < result.dims; ++i) {
    extents += (i == 0 ? "" : "x") + std::to_string(result.size[i]);
  }
  throw std::runtime_error("its output is " + extents + ", not " + std::to_string(rows) + "x" +
                           std::to_string(values));
}

void run_model(const char* path, const float* rows, const int64_t* extents, float* results,
               int64_t values) {
  cv::dnn::Net net = cv::dnn::readNetFromONNX(path);
  net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
  net.setPreferableTarget(cv::dnn::DNN_TARGET_CPU);
#if CV_VERSION_MAJOR > 4 || CV_VERSION_MINOR >= 7
  net.enableWinograd(false);  // the difference to be found is that of the model
#endif
  int sizes[4];
  std::transform(extents, extents + 4, sizes,
                 [](int64_t extent) { return static_cast<int>(extent); });
  // It does not write to it.
  const cv::Mat input(4, sizes, CV_32F, const_cast<float*>(rows));
  net.setInput(input);
  const cv::Mat result = net.forward();
  require_extents(result, extents[0], values);
  std::memcpy(results, result.ptr<float>(), result.total() * sizeof(float));
}

int32_t run(const char* path, const float* rows, const int64_t* extents, float* results,
            int64_t values, char* reason, uint32_t reason_bytes) {
  return tandem::opencv::without_exceptions(reason, reason_bytes, [&] {
    tandem::opencv::silence();
    run_model(path, rows, extents, results, values);
  });
}

constexpr tandem_onnx_runner runner{sizeof(tandem_onnx_runner), "OpenCV " CV_VERSION, &run};

}  // namespace

extern "C" __attribute__((visibility("default"))) const tandem_onnx_runner*
tandem_onnx_runner_entry() {
  return &runner;
}
