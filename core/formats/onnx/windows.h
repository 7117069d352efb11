// Windows of convolution and pooling in an ONNX model.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/formats/onnx/graph.h"
#include "core/plugin/attributes.h"

namespace tandem {

struct OnnxAxes {
  int64_t h = 0, w = 0;
};

struct OnnxWindow {
  OnnxAxes kernel, stride;
  OnnxAxes before, after;  // zeros around the image
};

// The values of a repeated parameter; none where it is not written.
template <class T>
[[nodiscard]] std::vector<T> listed(const Attributes& attributes, const std::string& name) {
  const Attribute* attribute = attributes.find(name);
  const auto* values =
      attribute != nullptr ? std::get_if<std::vector<T>>(&attribute->value) : nullptr;
  return values != nullptr ? *values : std::vector<T>{};
}

// A repeated parameter of one value, or of two, height and width; or its parameters for each axis
// ("stride_h").
[[nodiscard]] OnnxAxes repeated_axes(const Attributes& attributes, const std::string& name,
                                     OnnxAxes absent);
// A parameter for both axes, or two for one each.
[[nodiscard]] OnnxAxes pair_of_axes(const Attributes& attributes, const std::string& both,
                                    const std::string& h, const std::string& w, int64_t absent = 0);

// The average over a window, to which the zeros around the image count, but not `beyond`: places
// after them that the last window reaches.
std::string add_average(OnnxGraph& graph, const std::string& name, const std::string& x,
                        const OnnxWindow& window, OnnxAxes beyond);

}  // namespace tandem
