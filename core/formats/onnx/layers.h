// The ONNX forms of layer types, one function for each, found by the type's name. Each writes the
// layer's operators into the model. Error for a layer that ONNX cannot express.
#pragma once

#include <string>

#include "core/formats/onnx/onnx_net.h"

namespace tandem {

// Null for a type that has no form.
[[nodiscard]] OnnxForm onnx_form(const std::string& type);

}  // namespace tandem
