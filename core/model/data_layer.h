// What a net's data layers say about the data: a data set stands in for the layer itself, so only
// its transform, batch and shape are read.
#pragma once

#include "core/model/definition.h"

namespace tandem {

// Error with near names for what no data layer has, and for values that make no sense.
void check_data_layers(const NetDefinition& net);

}  // namespace tandem
