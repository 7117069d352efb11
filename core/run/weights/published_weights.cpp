#include "core/run/weights/published_weights.h"

#include <algorithm>

#include "core/base/error.h"

namespace tandem {

int64_t PublishedWeights::resize_for(int64_t crop) const {
  return std::max(crop, static_cast<int64_t>(static_cast<double>(crop) * resized_side / crop_side));
}

std::map<std::string, std::string> PublishedWeights::data_parameters() const {
  if (is_run || !run_parameters.empty()) return run_parameters;
  const auto pixel_mean = [this](size_t channel) { return mean[channel] / scale; };
  std::map<std::string, std::string> parameters;
  if (onnx != nullptr && onnx->net.input_shape().c != 3) {
    const bool is_told = !preparation_source.empty();
    parameters["scale"] = fmt::format("{:.9g}", is_told ? scale / std[0] : 1.0 / 255);
    if (!is_told) return parameters;
    if (mean[0] != 0) parameters["mean"] = fmt::format("{:.9g}", pixel_mean(0));
  } else {
    parameters["mean"] =
        fmt::format("{:.9g},{:.9g},{:.9g}", pixel_mean(2), pixel_mean(1), pixel_mean(0));
    parameters["scale"] = fmt::format("{:.9g}", scale);
    if (!is_bgr) parameters["color"] = "rgb";
  }
  parameters["resampling"] = "pillow";
  if (fit != "crop") parameters["fit"] = fit;
  if (interpolation == "bicubic") parameters["interpolation"] = interpolation;
  return parameters;
}

}  // namespace tandem
