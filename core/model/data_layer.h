// What a net's data layers say about the data: a data set stands in for the layer itself, so only
// its transform, batch and shape are read.
#pragma once

#include "core/model/definition.h"

namespace tandem {

// The i-th `shape { dim: ... }` of the layer's own block (one shape is for all tops), or its
// num/channels/height/width; zeros if it says nothing.
[[nodiscard]] Shape declared_shape(const LayerDefinition& layer, size_t top);

// What the first top of a data layer will hold, its transform included; n = 1, zeros where it does
// not say.
[[nodiscard]] Shape expected_shape(const LayerDefinition& layer);

// Error with near names for what no data layer has, and for values that make no sense.
void check_data_layers(const NetDefinition& net);

}  // namespace tandem
