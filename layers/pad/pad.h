// Pad: adds pixels around images, each side its own number: of a constant value (CONSTANT),
// mirrored without the edge (REFLECT), or copies of the edge (EDGE). The gradient of a pixel is the
// sum over its copies.
#pragma once

#include <string_view>
#include <vector>

#include "layers/common/mapped_image.h"

namespace tandem::layers {

struct PadAxis {
  enum Mode : int32_t { constant, reflect, edge };
  int64_t input, before, after;
  Mode mode;
  int64_t output = input + before + after;

  [[nodiscard]] TANDEM_HOST_DEVICE PixelSource source(int64_t i) const {
    const int64_t at = i - before;
    if (at >= 0 && at < input) return {at, at, 0};
    int64_t other = -1;
    if (mode == edge) other = at < 0 ? 0 : input - 1;
    if (mode == reflect) other = at < 0 ? -at : 2 * (input - 1) - at;
    return {other, other, 0};
  }
  // Its own place, and the copies before and after the image.
  static constexpr int ranges = 3;
  [[nodiscard]] TANDEM_HOST_DEVICE PixelRange targets(int64_t at, int which) const {
    const int64_t own = at + before;
    if (which == 0) return {own, own + 1};
    if (mode == edge) {
      if (which == 1 && at == 0) return {0, own};
      if (which == 2 && at == input - 1) return {own + 1, output};
    }
    if (mode == reflect) {
      const int64_t mirrored = which == 1 ? before - at : before + 2 * (input - 1) - at;
      const bool exists =
          which == 1 ? at > 0 && mirrored >= 0 : at < input - 1 && mirrored < output;
      if (exists) return {mirrored, mirrored + 1};
    }
    return {0, 0};
  }
  [[nodiscard]] int64_t only_copy() const { return mode == constant ? before : -1; }
};

struct PadSettings {
  PadAxis h, w;
  float value;

  // Throws Refusal for padding that the mode cannot fill.
  PadSettings(const sdk::Attributes& attributes, const sdk::Shape& input)
      : h{input.h, attributes.integer("top"), attributes.integer("bottom"), mode_of(attributes)},
        w{input.w, attributes.integer("left"), attributes.integer("right"), mode_of(attributes)},
        value(static_cast<float>(attributes.number("value"))) {
    for (const PadAxis& axis : {h, w}) {
      if (axis.mode != PadAxis::reflect) continue;
      if (axis.before < axis.input && axis.after < axis.input) continue;
      throw sdk::invalid("REFLECT pads by less than the image's extent, which is ", axis.input,
                         ", not by ", axis.before, " and ", axis.after);
    }
  }
  [[nodiscard]] sdk::Shape output(const sdk::Shape& input) const {
    return {input.n, input.c, h.output, w.output};
  }

 private:
  static PadAxis::Mode mode_of(const sdk::Attributes& attributes) {
    const std::string_view mode = attributes.text("mode");
    return mode == "REFLECT" ? PadAxis::reflect
           : mode == "EDGE"  ? PadAxis::edge
                             : PadAxis::constant;
  }
};

struct Pad : sdk::LayerType {
  const char* name() const override { return "Pad"; }
  const char* help() const override { return "adds pixels around images"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "pad_param";
    const double most = 1e6;
    return {
        sdk::integer(block, "top").by_default("0").range(0, most).help("rows before the image"),
        sdk::integer(block, "bottom").by_default("0").range(0, most).help("rows after it"),
        sdk::integer(block, "left").by_default("0").range(0, most).help("columns before it"),
        sdk::integer(block, "right").by_default("0").range(0, most).help("columns after it"),
        sdk::word(block, "mode")
            .by_default("CONSTANT")
            .one_of("CONSTANT|REFLECT|EDGE")
            .help("the values: a constant, the image mirrored, or its edge"),
        sdk::number(block, "value").by_default("0").help("CONSTANT: the value"),
    };
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    return {PadSettings(query.attributes, query.input(0)).output(query.input(0))};
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto x = static_cast<double>(sdk::count(query.input(0)));
    const auto y = static_cast<double>(sdk::count(shapes(query)[0]));
    return make_cost(0, y, 0, 4 * (x + y), 4 * (x + y), 0);
  }
};

}  // namespace tandem::layers
