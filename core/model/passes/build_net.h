// From the definition of a net to the net of one phase that devices run: the order of all passes
// over it. Every pass is a file of this folder.
#pragma once

#include "core/model/file/definition.h"
#include "core/model/net/net.h"

namespace tandem {

class Registry;

// Builds the net of one phase: data and Input layers become `data` and `label`, parameters are
// checked against the declared ones, a Scale is joined with the BatchNorm before it, a tensor with
// several gradients gets a Split, layouts and dtypes are chosen, Reorder layers inserted where
// neighbors differ, and sums and activations fused into kernels that can compute them. Without a
// kind of device no Scale is joined. Every Error names the layer, its type and file:line. The
// weights (names, shapes, order, offsets) are the same in both phases.
[[nodiscard]] Net build_net(const NetDefinition& definition, const Registry& registry,
                            const NetOptions& options);

}  // namespace tandem
