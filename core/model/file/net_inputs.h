// The inputs of a net: its data layers, Input layers and old `input` fields. A data set replaces a
// data layer, so only its transform, batch size and shapes are read. NetDefinition::net_inputs(),
// transform(), batch_size() and input_shape() are here.
#pragma once

#include "core/model/file/definition.h"

namespace tandem {

// Error with near names for a field that no data layer has, and for a value that makes no sense.
void check_data_layers(const NetDefinition& net);

}  // namespace tandem
