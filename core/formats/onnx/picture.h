// What happens to a picture before the net reads it, as a part of an ONNX model: the same as the
// data set does when it tests and predicts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/formats/onnx/graph.h"
#include "plugins/center_crop.h"

namespace tandem {

// The steps (docs/reference/data.md).
struct PictureSteps {
  // Which resampled pixels become whole numbers: none, those of the result, or those of each of two
  // passes, as by Pillow.
  enum class Rounding { none, once, each_pass };
  // As center_crop::Wanted's.
  center_crop::Fit fit = center_crop::Fit::crop;
  int64_t resize = 0, resize_width = 0;
  std::vector<float> bars;   // what bars around the picture are for the net; empty: 0
  std::vector<float> means;  // of the net's channels, in their order
  // Instead of the means: what is added to each value of the net's input; empty: nothing.
  std::vector<float> shifts;
  float scale = 1;        // (pixel - mean) * scale
  bool is_rgb = false;    // order of the net's channels; else B,G,R
  bool is_cubic = false;  // the filter; else linear
  Rounding rounding = Rounding::none;
};

// From pictures of the shape `size`, in R,G,B or gray, values 0 to 255, to the net's input of shape
// `crop`. `picture` is the name of the graph's input. Returns the name of the result.
std::string add_picture_steps(OnnxGraph& graph, const std::string& picture, const Shape& size,
                              const Shape& crop, const PictureSteps& steps);
// The same of pictures of any size, all rows alike: by the operator Resize, which averages where a
// picture shrinks. For graphs of OnnxGraph::antialias_opset or later.
std::string add_steps_of_any_picture(OnnxGraph& graph, const std::string& picture,
                                     const Shape& crop, const PictureSteps& steps);

}  // namespace tandem
