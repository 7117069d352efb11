// Reads a layer's message by the parameters that its type declares: checks values, fills in
// defaults. An unknown field or block is an Error with near names and file:line:column.
#pragma once

#include <memory>

#include "core/model/file/definition.h"
#include "core/plugin/attributes.h"
#include "plugins/abi.h"

namespace tandem {

[[nodiscard]] std::shared_ptr<const Attributes> read_attributes(const LayerDefinition& layer,
                                                                const tandem_layer_type& type);

}  // namespace tandem
