// A run's net as an ONNX file. Tests compare other programs' scores of such files with those of the
// net here.
#pragma once

#include "include/tandem/predict.h"

namespace tandem {

// As export_run(), for a file of the format ONNX.
[[nodiscard]] ExportResult export_onnx(const ExportOptions& options);

}  // namespace tandem
