// Upsample: images of another size, each pixel the nearest of the input (NEAREST: at or before its
// place) or the mean of four, weighted by distance (BILINEAR). Places are those of PyTorch's
// interpolate: with align_corners the corner pixels' centers are the same, else the images' edges.
#pragma once

#include <cmath>
#include <vector>

#include "layers/common/mapped_image.h"

namespace tandem::layers {

struct UpsampleAxis {
  int64_t input, output;
  bool is_linear, aligns;
  double step;  // pixels of the input from one of the output to the next

  [[nodiscard]] TANDEM_HOST_DEVICE PixelSource source(int64_t i) const {
    const double written = static_cast<double>(i);
    constexpr double rounding = 1e-9;
    double place = is_linear && !aligns ? (written + 0.5) * step - 0.5 : written * step;
    if (!is_linear) place += rounding;
    if (place < 0) place = 0;
    int64_t first = static_cast<int64_t>(place);
    if (first > input - 1) first = input - 1;
    if (!is_linear || first == input - 1) return {first, first, 0};
    return {first, first + 1, static_cast<float>(place - static_cast<double>(first))};
  }
  static constexpr int ranges = 1;
  [[nodiscard]] TANDEM_HOST_DEVICE PixelRange targets(int64_t at, int) const {
    if (output <= 1 || input <= 1) return {0, output};
    const int64_t begin = static_cast<int64_t>(static_cast<double>(at - 1) / step) - 2;
    const int64_t end = static_cast<int64_t>(static_cast<double>(at + 2) / step) + 3;
    return {begin < 0 ? 0 : begin, end > output || at == input - 1 ? output : end};
  }
  [[nodiscard]] int64_t only_copy() const { return -1; }
};

struct UpsampleSettings {
  UpsampleAxis h, w;
  static constexpr float value = 0;  // every pixel is made of some

  // Throws Refusal for a size that is none.
  UpsampleSettings(const sdk::Attributes& attributes, const sdk::Shape& input)
      : h(axis(attributes, input.h, "scale_h")), w(axis(attributes, input.w, "scale_w")) {}
  [[nodiscard]] sdk::Shape output(const sdk::Shape& input) const {
    return {input.n, input.c, h.output, w.output};
  }

 private:
  static UpsampleAxis axis(const sdk::Attributes& attributes, int64_t extent, const char* name) {
    constexpr double rounding = 1e-6, most = 1e6;
    const double scale = attributes.number(name);
    const double output = std::floor(static_cast<double>(extent) * scale + rounding);
    if (output < 1 || output > most) {
      throw sdk::invalid(name, " ", scale, " makes ", output, " pixels of ", extent);
    }
    const bool is_linear = attributes.text("mode") == "BILINEAR";
    const bool aligns = is_linear && attributes.boolean("align_corners");
    const auto input = static_cast<double>(extent);
    // Extents that are not whole are rounded down; the pixels keep their distances.
    double step = std::abs(input * scale - output) < 2 * rounding ? input / output : 1 / scale;
    if (aligns) step = output > 1 ? (input - 1) / (output - 1) : 0;
    return {extent, static_cast<int64_t>(output), is_linear, aligns, step};
  }
};

struct Upsample : sdk::LayerType {
  const char* name() const override { return "Upsample"; }
  const char* help() const override { return "images of another size, by interpolation"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "upsample_param";
    return {
        sdk::number(block, "scale_h").by_default("2").range(1e-3, 1e3).help("factor of the height"),
        sdk::number(block, "scale_w").by_default("2").range(1e-3, 1e3).help("factor of the width"),
        sdk::word(block, "mode")
            .by_default("NEAREST")
            .one_of("NEAREST|BILINEAR")
            .help("the nearest pixel, or the weighted mean of four"),
        sdk::boolean(block, "align_corners")
            .by_default("false")
            .help("BILINEAR: the corner pixels keep their places"),
    };
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    return {UpsampleSettings(query.attributes, query.input(0)).output(query.input(0))};
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto x = static_cast<double>(sdk::count(query.input(0)));
    const auto y = static_cast<double>(sdk::count(shapes(query)[0]));
    return make_cost(8 * y, 8 * y, 0, 4 * (x + y), 4 * (x + y), 0);
  }
};

}  // namespace tandem::layers
