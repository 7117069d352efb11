#include "core/train/onnx_runners.h"

#include <dlfcn.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/plugin/module.h"
#include "core/plugin/registry.h"

namespace tandem {
namespace {

const tandem_onnx_runner* load_runner(const std::filesystem::path& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(explain_loader_message(path, dlerror()));
  // POSIX allows this conversion, which C++ leaves to the implementation.
  const auto entry =
      reinterpret_cast<tandem_onnx_runner_function>(dlsym(library, "tandem_onnx_runner_entry"));
  const tandem_onnx_runner* runner = entry != nullptr ? entry() : nullptr;
  if (runner == nullptr || runner->struct_size < sizeof(tandem_onnx_runner)) {
    throw Error("it is a module of another version of Tandem");
  }
  return runner;
}

}  // namespace

OnnxRunners find_onnx_runners() {
  std::set<std::filesystem::path> modules;
  for (const std::filesystem::path& plugins : Registry::own_folders()) {
    std::error_code code;
    const auto folder = std::filesystem::weakly_canonical(plugins / "../onnx", code);
    if (code) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
      if (entry.path().extension() == ".so") modules.insert(entry.path());
    }
  }
  OnnxRunners runners;
  for (const auto& module : modules) {
    try {
      runners.found.push_back(load_runner(module));
    } catch (const Error& failure) {
      runners.failures.push_back(fmt::format("{}: {}", module.string(), failure.what()));
    }
  }
  return runners;
}

}  // namespace tandem
