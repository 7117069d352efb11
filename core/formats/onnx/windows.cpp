#include "core/formats/onnx/windows.h"

namespace tandem {

OnnxAxes repeated_axes(const Attributes& attributes, const std::string& name, OnnxAxes absent) {
  const std::string h = name + "_h", w = name + "_w";
  if (attributes.find(h) != nullptr && attributes.is_set(h)) {
    return {attributes.integer(h), attributes.integer(w)};
  }
  const auto values = listed<int64_t>(attributes, name);
  return values.empty() ? absent : OnnxAxes{values.front(), values.back()};
}

OnnxAxes pair_of_axes(const Attributes& attributes, const std::string& both, const std::string& h,
                      const std::string& w, int64_t absent) {
  if (attributes.is_set(h)) return {attributes.integer(h), attributes.integer(w)};
  if (!attributes.is_set(both)) return {absent, absent};
  return {attributes.integer(both), attributes.integer(both)};
}

std::string add_average(OnnxGraph& graph, const std::string& name, const std::string& x,
                        const OnnxWindow& window, OnnxAxes beyond) {
  std::string padded = x;
  const OnnxAxes before = window.before, after = window.after;
  // Not by count_include_pad, which some runtimes ignore.
  if (before.h + before.w + after.h + after.w > 0) {
    const std::string pads =
        graph.integers(name + "/pads", {0, 0, before.h, before.w, 0, 0, after.h, after.w});
    padded = graph.add("Pad", name + "/Pad", {x, pads});
  }
  return graph.add("AveragePool", name + "/AveragePool", {padded},
                   {{"kernel_shape", std::vector{window.kernel.h, window.kernel.w}},
                    {"strides", std::vector{window.stride.h, window.stride.w}},
                    {"pads", std::vector<int64_t>{0, 0, beyond.h, beyond.w}},
                    {"count_include_pad", int64_t{0}}});
}

}  // namespace tandem
