// The pass of build_net() that chooses the memory layouts of tensors.
#pragma once

#include "core/model/net/draft.h"

namespace tandem {

// Gives each layer the layout option of its kernel with the least extra bytes and reorders in the
// whole net, and inserts Reorder layers where neighbours differ in layout or dtype.
void choose_layouts(Draft& draft, const std::string& device_kind);

}  // namespace tandem
