// Pooling: the maximum or average of a window, as in Caffe. Output extents are rounded up; a last
// window that would begin in the padding after the image is dropped. An average divides by the size
// of the window's part inside the padded image, or without count_padding inside the image.
#pragma once

#include <algorithm>
#include <vector>

#include "layers/common/engine_parameter.h"
#include "layers/common/window.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct PoolingSettings {
  bool maximum, round_up, counts_padding;
  Window window;

  // Throws Refusal if parameters contradict each other or do not fit the input.
  PoolingSettings(const sdk::Attributes& attributes, const sdk::Shape& input)
      : maximum(attributes.text("pool") == "MAX"),
        round_up(attributes.text("round_mode") == "CEIL"),
        counts_padding(attributes.boolean("count_padding")),
        window(read_window(attributes, input)) {
    if (attributes.text("pool") == "STOCHASTIC") {
      throw sdk::unsupported("pool STOCHASTIC is not supported: only MAX and AVE are");
    }
    if (window.pad.h >= window.kernel.h || window.pad.w >= window.kernel.w) {
      throw sdk::invalid("pad ", text_of(window.pad), " must be smaller than the kernel ",
                         text_of(window.kernel), ": a window would contain no pixel");
    }
    require_fit(window, input);
  }

  [[nodiscard]] sdk::Shape output_shape(const sdk::Shape& input) const {
    return {input.n, input.c,
            windows_along(input.h, window.kernel.h, window.stride.h, window.pad.h),
            windows_along(input.w, window.kernel.w, window.stride.w, window.pad.w)};
  }

 private:
  [[nodiscard]] int64_t windows_along(int64_t extent, int64_t kernel, int64_t stride,
                                      int64_t pad) const {
    const int64_t room = extent + 2 * pad - kernel;
    const int64_t windows = (room + (round_up ? stride - 1 : 0)) / stride + 1;
    return (windows - 1) * stride >= extent + pad ? windows - 1 : windows;
  }

  static Axes axes(const sdk::Attributes& attributes, const AxesNames& names, Axes absent) {
    if (!written(attributes, names)) return absent;
    if (attributes.is_set(names.both)) {
      return {attributes.integer(names.both), attributes.integer(names.both)};
    }
    return {attributes.integer(names.h), attributes.integer(names.w)};
  }
  static Window read_window(const sdk::Attributes& attributes, const sdk::Shape& input) {
    const bool sized = written(attributes, kernel_names);
    Window window;
    window.stride = axes(attributes, stride_names, {1, 1});
    window.pad = axes(attributes, pad_names, {0, 0});
    if (!attributes.boolean("global_pooling")) {
      if (!sized) {
        throw sdk::invalid("the kernel has no size: write kernel_size, or kernel_h and kernel_w");
      }
      window.kernel = axes(attributes, kernel_names, {});
      return window;
    }
    if (sized) throw sdk::invalid("global_pooling pools the whole image: remove kernel_size");
    if (window.pad.h + window.pad.w != 0 || window.stride.h * window.stride.w != 1) {
      throw sdk::invalid("global_pooling needs pad 0 and stride 1, but they are ",
                         text_of(window.pad), " and ", text_of(window.stride));
    }
    window.kernel = {input.h, input.w};
    return window;
  }
};

struct Pooling : sdk::LayerType {
  const char* name() const override { return "Pooling"; }
  const char* help() const override { return "the maximum or average of a sliding window"; }

  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "pooling_param";
    const double most = 1e6;
    return {
        sdk::word(block, "pool")
            .by_default("MAX")
            .one_of("MAX|AVE|STOCHASTIC")
            .help("MAX or AVE; STOCHASTIC is not supported"),
        sdk::integer(block, "kernel_size").range(1, most).help("window height and width"),
        sdk::integer(block, "kernel_h").range(1, most).help("window height, with kernel_w"),
        sdk::integer(block, "kernel_w").range(1, most).help("window width, with kernel_h"),
        sdk::integer(block, "stride").range(1, most).help("both strides; 1"),
        sdk::integer(block, "stride_h").range(1, most).help("vertical stride, with stride_w"),
        sdk::integer(block, "stride_w").range(1, most).help("horizontal stride, with stride_h"),
        sdk::integer(block, "pad").range(0, most).help("padding on each side; 0"),
        sdk::integer(block, "pad_h").range(0, most).help("vertical padding, with pad_w"),
        sdk::integer(block, "pad_w").range(0, most).help("horizontal padding, with pad_h"),
        sdk::boolean(block, "global_pooling").by_default("false").help("one window, the image"),
        sdk::word(block, "round_mode")
            .by_default("CEIL")
            .one_of("CEIL|FLOOR")
            .help("how the number of windows is rounded"),
        sdk::boolean(block, "count_padding")
            .by_default("true")
            .help("AVE: pixels of the padding count as zeros"),
        engine_parameter(block),
    };
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const sdk::Shape& input = query.input(0);
    return {PoolingSettings(query.attributes, input).output_shape(input)};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const PoolingSettings settings(query.attributes, query.input(0));
    const auto x = static_cast<double>(sdk::count(query.input(0)));
    const auto y = static_cast<double>(sdk::count(settings.output_shape(query.input(0))));
    const auto area = static_cast<double>(settings.window.kernel.h * settings.window.kernel.w);
    const double bytes = 4 * (x + y) + (settings.maximum ? y : 0);
    return make_cost(y * area, settings.maximum ? y : y * area, 0, bytes, bytes, 0);
  }
};

}  // namespace tandem::layers
