// Images and windows of ONNX's operators: strides, dilations and paddings of two axes; of one axis
// where the image has one.
#pragma once

#include "core/formats/onnx_reader/mapper.h"

namespace tandem::onnx_operators {

struct OnnxSpan {
  int64_t h = 1, w = 1;
};
[[nodiscard]] inline bool equal(const OnnxSpan& a, const OnnxSpan& b) {
  return a.h == b.h && a.w == b.w;
}

struct OnnxImage {
  int64_t c = 1, h = 1, w = 1;
};
// Of a value with axes N, C, H, W, or N, C, W. Error for others.
[[nodiscard]] OnnxImage image_of(const OnnxNetValue& value);

struct OnnxWindow {
  OnnxSpan kernel, stride, dilation;
  OnnxSpan before{0, 0}, after{0, 0};  // padding
  bool rounds_up = false;

  // The number of windows.
  [[nodiscard]] OnnxSpan results(const OnnxImage& image) const;
  // By what averages over whole windows are multiplied so that they count what is in the image
  // only, or in the image and its padding.
  [[nodiscard]] OnnxTensor corrections(const OnnxImage& image, bool counts_padding) const;
};
// From the node's attributes. Error for values that make no sense.
[[nodiscard]] OnnxWindow window_of(const OnnxNode& node, const OnnxImage& image, OnnxSpan kernel,
                                   size_t axes);

// Where the padding is not the same on both sides, adds a Pad layer for all of it, and takes it
// from the window.
[[nodiscard]] OnnxNetValue padded(OnnxMapper& mapper, const OnnxNode& node, OnnxNetValue x,
                                  OnnxWindow& window, double value);

// "kernel_size: 3", or "kernel_h: 1 kernel_w: 3".
void add_both(Message& block, const std::string& each, const char* both, const OnnxSpan& span);
// The layer's output as an image with one or two axes.
[[nodiscard]] OnnxNetValue image_value(const Message& layer, const NetExtents& net, size_t axes);

}  // namespace tandem::onnx_operators
