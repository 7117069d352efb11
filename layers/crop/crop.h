// Crop: cuts input 0 to the extents of input 1 from `axis` on, beginning at `offset`, as Caffe
// does. Only the shape of input 1 is used. The gradient is zero outside the output's box.
#pragma once

#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

// The box of input 0 that is the output.
struct CropBox {
  Extents begin{}, extent{};

  // Throws Refusal for offsets that do not fit.
  CropBox(const sdk::Attributes& attributes, const sdk::Shape& input, const sdk::Shape& reference)
      : extent(extents_of(input)) {
    const size_t axis = sample_axis(attributes.integer("axis"), input);
    const std::vector<int64_t> offsets = attributes.integers("offset");
    const size_t cut = extent.size() - axis;
    if (offsets.size() > 1 && offsets.size() != cut) {
      throw sdk::invalid(offsets.size(), " offsets, but ", cut, " axes are cropped from axis ",
                         axis, " on: write one for all, or one for each");
    }
    for (size_t i = axis; i < extent.size(); ++i) {
      if (!offsets.empty()) begin[i] = offsets.size() == 1 ? offsets[0] : offsets[i - axis];
      extent[i] = extents_of(reference)[i];
      // One offset for all axes does not fit an axis that keeps its extent.
      if (begin[i] + extent[i] <= extents_of(input)[i]) continue;
      throw sdk::invalid("axis ", i, " has ", extents_of(input)[i], ", but ", extent[i],
                         " from offset ", begin[i], " are needed (input 0 is ", sdk::text_of(input),
                         ", input 1 ", sdk::text_of(reference), ")");
    }
  }
};

struct Crop : sdk::LayerType {
  const char* name() const override { return "Crop"; }
  const char* help() const override { return "cuts input 0 to the extents of input 1"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "crop_param";
    return {
        sdk::integer(block, "axis")
            .by_default("2")
            .range(-4, 3)
            .help("the first axis to crop; 2: height and width"),
        sdk::integers(block, "offset")
            .range(0, 1e9)
            .help("first index: one value, or one per axis; default 0"),
    };
  }
  sdk::Inputs inputs() const override {
    return {sdk::Input("data"), sdk::Input("size").shape_only()};
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    return {shape_of(CropBox(query.attributes, query.input(0), query.input(1)).extent)};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto x = static_cast<double>(sdk::count(query.input(0)));
    const auto y = static_cast<double>(sdk::count(shapes(query)[0]));
    return make_cost(0, 0, 0, 8 * y, 4 * x + 8 * y, 0);
  }
};

}  // namespace tandem::layers
