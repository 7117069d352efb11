// Calls of OpenCV in modules that wrap it for one purpose (onnx, video): OpenCV prints nothing, and
// no exception leaves the module.
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>

namespace tandem::opencv {

// OpenCV prints every error that it throws, unless there is a function to tell it to.
inline void silence() {
  cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
}

// 0; or 1 if function() throws, with the reason as text of at most reason_bytes bytes.
template <class Function>
int32_t without_exceptions(char* reason, uint32_t reason_bytes, const Function& function) {
  try {
    function();
    return 0;
  } catch (const cv::Exception& failure) {
    std::snprintf(reason, reason_bytes, "%s", failure.err.c_str());
  } catch (const std::exception& failure) {
    std::snprintf(reason, reason_bytes, "%s", failure.what());
  } catch (...) {
    std::snprintf(reason, reason_bytes, "unknown failure");
  }
  return 1;
}

}  // namespace tandem::opencv
