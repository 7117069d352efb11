// Upsample: images of another size, each pixel the nearest of the input (NEAREST: at or before its
// place) or the mean of four, weighted by distance (BILINEAR). Places are those of PyTorch's
// interpolate: with align_corners the corner pixels' centers are the same, else the images' edges.
#pragma once

#include <cmath>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

// One axis: which pixels of the input each pixel of the output is made of.
struct UpsampleAxis {
  int64_t input, output;
  bool is_linear, aligns;

  struct Source {
    int64_t first, second;
    float second_share;
  };
  [[nodiscard]] TANDEM_HOST_DEVICE double ratio() const {
    if (is_linear && aligns) {
      return output > 1 ? static_cast<double>(input - 1) / static_cast<double>(output - 1) : 0;
    }
    return static_cast<double>(input) / static_cast<double>(output);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE Source source(int64_t i) const {
    if (!is_linear) {
      const int64_t at = i * input / output;
      return {at, at, 0};
    }
    const double written = static_cast<double>(i);
    double place = aligns ? written * ratio() : (written + 0.5) * ratio() - 0.5;
    if (place < 0) place = 0;
    int64_t first = static_cast<int64_t>(place);
    if (first > input - 1) first = input - 1;
    const int64_t second = first + 1 < input ? first + 1 : first;
    return {first, second, static_cast<float>(place - static_cast<double>(first))};
  }
  // The pixels of the output, [begin, end), that may be made of pixel `at`.
  struct Range {
    int64_t begin, end;
  };
  [[nodiscard]] TANDEM_HOST_DEVICE Range targets(int64_t at) const {
    if (output <= 1 || input <= 1) return {0, output};
    const double each = 1 / ratio();
    const int64_t begin = static_cast<int64_t>(static_cast<double>(at - 1) * each) - 2;
    const int64_t end = static_cast<int64_t>(static_cast<double>(at + 2) * each) + 3;
    return {begin < 0 ? 0 : begin, end > output ? output : end};
  }
  // The share of input pixel `at` in output pixel `i`.
  [[nodiscard]] TANDEM_HOST_DEVICE float share(int64_t i, int64_t at) const {
    const Source of = source(i);
    return (of.first == at ? 1 - of.second_share : 0) + (of.second == at ? of.second_share : 0);
  }
};

struct UpsampleSettings {
  UpsampleAxis h, w;

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
    return {extent, static_cast<int64_t>(output), attributes.text("mode") == "BILINEAR",
            attributes.boolean("align_corners")};
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
