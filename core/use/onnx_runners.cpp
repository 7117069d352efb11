#include "core/use/onnx_runners.h"

#include "core/use/library_modules.h"

namespace tandem {

OnnxRunners find_onnx_runners() {
  const LibraryModules modules =
      find_library_modules("onnx", "tandem_onnx_runner_entry", sizeof(tandem_onnx_runner));
  OnnxRunners runners{{}, modules.failures};
  for (const void* table : modules.tables) {
    runners.found.push_back(static_cast<const tandem_onnx_runner*>(table));
  }
  return runners;
}

}  // namespace tandem
