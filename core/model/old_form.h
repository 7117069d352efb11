// Caffe's old net files, as Caffe itself upgrades them: `layers { type: CONVOLUTION blobs_lr: 1 }`
// (V1) and `layers { layer { type: "conv" kernelsize: 3 } bottom: "data" }` (V0, with its padding
// layers). What comes out is in the current form, with every place kept, so that nothing else knows
// that there were others.
#pragma once

#include <vector>

#include "core/model/text_format.h"

namespace tandem {

// The layers of a net's message in the current form, each a field with a message of its own. Error
// for an unknown type, for a V0 field that its type does not have, and for a net that mixes `layer`
// and `layers`.
[[nodiscard]] std::vector<Field> current_layers(const Message& net);

// Of one field `layers`, a V1 layer.
[[nodiscard]] Message current_form(const Field& layers);

// Of all fields `layers` of a net whose layers are V0: V1 layers, without the padding layers.
[[nodiscard]] std::vector<Field> first_upgrade(const std::vector<Field>& layers);

}  // namespace tandem
