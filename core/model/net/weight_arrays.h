// The weights of a net: which arrays its layers declare and share, and the offset of each in the
// one array that holds all weights.
#pragma once

#include "core/model/net/draft.h"

namespace tandem {

// The weights that a layer's type declares over these inputs, with their rules and fillers.
[[nodiscard]] std::vector<DeclaredWeight> declare_weights(const LayerDefinition& definition,
                                                          const Layer& layer, int32_t phase,
                                                          const std::vector<Shape>& inputs);

// Sets net.weights, in file order over the layers of both phases, so that names and offsets are the
// same in both. `other`: the draft of the other phase, null if that phase cannot be built.
void place_weights(Draft& draft, const Draft* other);

}  // namespace tandem
