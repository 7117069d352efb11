// Recognizes forms that exporters write with several nodes, as x * sigmoid(x) for SiLU. The forms
// are a table of expressions; each becomes one node of the domain "tandem".
#pragma once

#include "core/formats/onnx_reader/file.h"

namespace tandem {

// Replaces the last node of each form by one node of the form's name, whose inputs are the form's
// variables: x, then the others in the order of the alphabet. The other nodes stay: what no output
// needs is not read later.
void recognize_patterns(OnnxFile& file);

}  // namespace tandem
