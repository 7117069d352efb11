// Tile: repeats its input along one of Caffe's axes. The gradient is the sum over the tiles, in
// their order.
#pragma once

#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

struct Tile : sdk::LayerType {
  const char* name() const override { return "Tile"; }
  const char* help() const override { return "repeats its input along one axis"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "tile_param";
    return {
        sdk::integer(block, "axis").by_default("1").range(-4, 3).help("the axis; 1: channels"),
        sdk::integer(block, "tiles").required().range(1, 1e6).help("how often"),
    };
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    Extents extents = extents_of(query.input(0));
    extents[sample_axis(query.attributes.integer("axis"), query.input(0))] *=
        query.attributes.integer("tiles");
    return {shape_of(extents)};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto x = static_cast<double>(sdk::count(query.input(0)));
    const double y = x * static_cast<double>(query.attributes.integer("tiles"));
    return make_cost(0, y - x, 0, 4 * (x + y), 4 * (x + y), 0);
  }
};

}  // namespace tandem::layers
