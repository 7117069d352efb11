// The pass of build_net() that gives layers and tensors a dtype.
//
// Layers with weights take the wanted precision where their kernels support it. Layers without
// weights take it where a neighbour has it. A chain without weights stays float32: converting there
// and back would cost more than it saves. Weights, labels, losses and metrics are always float32.
#pragma once

#include "core/model/net/draft.h"

namespace tandem {

// `precision`: TANDEM_FLOAT32, a 16-bit dtype or tf32_precision. Error if no layer can have it.
void choose_dtypes(Draft& draft, const std::string& device_kind, int32_t precision);

// The dtype in which a layer reads an input that has the dtype `given`.
[[nodiscard]] int32_t wanted_dtype(const Net& net, const Layer& layer, size_t input, int32_t given);

}  // namespace tandem
