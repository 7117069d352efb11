// The libraries that can run an exported ONNX model: modules in lib/tandem/onnx, each loaded when
// it is asked for (plugins/onnx/runner.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plugins/onnx/runner.h"

namespace tandem {

struct OnnxRunners {
  std::vector<const tandem_onnx_runner*> found;  // valid until the process ends
  std::vector<std::string> failures;             // "PATH: why" of modules that do not load
};

[[nodiscard]] OnnxRunners find_onnx_runners();

}  // namespace tandem
