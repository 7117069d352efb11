// The window that convolution and pooling slide over an image, from Caffe's parameters: one value
// for both axes, or one for each. Reading throws a Refusal for a window that fits no image;
// require_fit() throws one for a window that does not fit this image.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/sdk.h"

namespace tandem::layers {

struct Axes {
  int64_t h = 0, w = 0;
};

inline std::string text_of(const Axes& axes) {
  return axes.h == axes.w ? sdk::text(axes.h) : sdk::text(axes.h, "x", axes.w);
}

struct Window {
  Axes kernel;
  Axes stride{1, 1};
  Axes pad;
  Axes dilation{1, 1};
};

// `both` is the parameter for both axes ("stride"), `h` and `w` are those for each axis.
struct AxesNames {
  const char *both, *h, *w;
};
inline constexpr AxesNames kernel_names{"kernel_size", "kernel_h", "kernel_w"};
inline constexpr AxesNames stride_names{"stride", "stride_h", "stride_w"};
inline constexpr AxesNames pad_names{"pad", "pad_h", "pad_w"};

// Whether the user wrote the parameter. Refuses half a pair, and both forms at once.
inline bool written(const sdk::Attributes& attributes, const AxesNames& names) {
  const bool h = attributes.is_set(names.h);
  const bool w = attributes.is_set(names.w);
  const bool both = attributes.is_set(names.both);
  if (h != w)
    throw sdk::invalid(names.h, " and ", names.w, " must be written together, but one is missing");
  if (both && h) {
    throw sdk::invalid("write either ", names.both, " or ", names.h, " and ", names.w,
                       ", not both");
  }
  return both || h;
}

// A repeated field of one value, or of two: height and width.
inline Axes repeated_axes(const sdk::Attributes& attributes, const char* name, Axes absent) {
  const std::vector<int64_t> values = attributes.integers(name);
  if (values.empty()) return absent;
  if (values.size() > 2) {
    throw sdk::invalid(name, " has ", values.size(), " values, but an image has 2 axes");
  }
  return {values.front(), values.back()};
}

inline Axes effective_kernel(const Window& window) {
  return {(window.kernel.h - 1) * window.dilation.h + 1,
          (window.kernel.w - 1) * window.dilation.w + 1};
}

inline void require_fit(const Window& window, const sdk::Shape& input) {
  const Axes kernel = effective_kernel(window);
  const Axes padded{input.h + 2 * window.pad.h, input.w + 2 * window.pad.w};
  if (kernel.h <= padded.h && kernel.w <= padded.w) return;
  throw sdk::invalid("kernel ", text_of(window.kernel),
                     window.dilation.h > 1 || window.dilation.w > 1
                         ? sdk::text(" with dilation ", text_of(window.dilation))
                         : "",
                     " exceeds the padded input ", padded.h, "x", padded.w);
}

}  // namespace tandem::layers
