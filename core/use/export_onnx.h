// A run's net as an ONNX file, which is checked before it gets its name: other programs' scores of
// it must be those of the net here.
#pragma once

#include "include/tandem/predict.h"

namespace tandem {

// As export_run(), for a file of the format ONNX.
[[nodiscard]] ExportResult export_onnx(const ExportOptions& options);

}  // namespace tandem
