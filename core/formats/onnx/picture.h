// What happens to a picture before the net reads it, as a part of an ONNX model: the same as the
// data set does when it tests and predicts.
#pragma once

#include <string>

#include "core/formats/onnx/export.h"
#include "core/formats/onnx/graph.h"

namespace tandem {

// From pictures of this size, in R,G,B or gray, values 0 to 255, to the net's input of shape
// `crop`. Returns the name of the result.
std::string add_picture_steps(OnnxGraph& graph, const std::string& picture,
                              const OnnxOptions::Size& size, const Shape& crop,
                              const PictureSteps& steps);

}  // namespace tandem
