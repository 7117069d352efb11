// Upgrades Caffe's old net files as Caffe itself does: `layers { type: CONVOLUTION blobs_lr: 1 }`
// (V1) and `layers { layer { type: "conv" kernelsize: 3 } bottom: "data" }` (V0, with padding
// layers). A BatchNorm with `scale_bias: true`, as forks of Caffe have it, becomes a
// BatchNormScale. The result is in the current form with every location kept; no other code knows
// the other forms.
#pragma once

#include <vector>

#include "core/model/file/text_format.h"

namespace tandem {

// The layers of a net's message in the current form, each a field with a message of its own. Error
// for an unknown type, for a V0 field that its type does not have, for a scale_bias that
// read_scale_bias() refuses, and for a net that mixes `layer` and `layers`.
[[nodiscard]] std::vector<Field> current_layers(const Message& net);

}  // namespace tandem
