// Pad: adds pixels around images, each side its own number: of a constant value (CONSTANT),
// mirrored without the edge (REFLECT), or copies of the edge (EDGE). The gradient of a pixel is the
// sum over its copies.
#pragma once

#include <string_view>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

// One axis: which pixel of the input each pixel of the output is.
struct PadAxis {
  enum Mode : int32_t { constant, reflect, edge };
  int64_t extent, before, after;
  Mode mode;

  [[nodiscard]] TANDEM_HOST_DEVICE int64_t padded() const { return extent + before + after; }
  // -1: none.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t source(int64_t i) const {
    const int64_t at = i - before;
    if (at >= 0 && at < extent) return at;
    if (mode == constant) return -1;
    if (mode == edge) return at < 0 ? 0 : extent - 1;
    return at < 0 ? -at : 2 * (extent - 1) - at;
  }
  // The pixels of the output that are pixel `at`: up to three ranges, [begin, end).
  struct Range {
    int64_t begin, end;
  };
  [[nodiscard]] TANDEM_HOST_DEVICE Range copies(int64_t at, int which) const {
    const int64_t own = at + before;
    if (which == 0) return {own, own + 1};
    if (mode == edge) {
      if (which == 1 && at == 0) return {0, own};
      if (which == 2 && at == extent - 1) return {own + 1, padded()};
    }
    if (mode == reflect) {
      const int64_t mirrored = which == 1 ? before - at : before + 2 * (extent - 1) - at;
      const bool exists =
          which == 1 ? at > 0 && mirrored >= 0 : at < extent - 1 && mirrored < padded();
      if (exists) return {mirrored, mirrored + 1};
    }
    return {0, 0};
  }
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
      if (axis.before < axis.extent && axis.after < axis.extent) continue;
      throw sdk::invalid("REFLECT pads by less than the image's extent, which is ", axis.extent,
                         ", not by ", axis.before, " and ", axis.after);
    }
  }
  [[nodiscard]] sdk::Shape output(const sdk::Shape& input) const {
    return {input.n, input.c, h.padded(), w.padded()};
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
