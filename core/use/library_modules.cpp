#include "core/use/library_modules.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/plugin/module.h"
#include "core/plugin/registry.h"
#include "core/plugin/trust.h"

namespace tandem {
namespace {

const void* load_table(const std::filesystem::path& path, const char* entry, size_t size) {
  using Entry = const void* (*)();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(explain_loader_message(path, dlerror()));
  // POSIX allows this conversion, which C++ leaves to the implementation.
  const auto function = reinterpret_cast<Entry>(dlsym(library, entry));
  const void* table = function != nullptr ? function() : nullptr;
  uint32_t size_of_table = 0;
  if (table != nullptr) std::memcpy(&size_of_table, table, sizeof(size_of_table));
  if (size_of_table < size) throw Error("it is a module of another version of Tandem");
  return table;
}

}  // namespace

LibraryModules find_library_modules(const std::string& kind, const char* entry, size_t size) {
  std::set<std::filesystem::path> paths;
  for (const std::filesystem::path& plugins : Registry::own_folders()) {
    std::error_code code;
    const auto folder = std::filesystem::weakly_canonical(plugins / ".." / kind, code);
    if (code) continue;
    for (const std::filesystem::path& file : entries_of(folder)) {
      if (file.extension() == ".so") paths.insert(file);
    }
  }
  LibraryModules modules;
  for (const auto& path : paths) {
    try {
      if (const std::string refusal = why_not_trusted(path); !refusal.empty()) throw Error(refusal);
      modules.tables.push_back(load_table(path, entry, size));
    } catch (const Error& failure) {
      modules.failures.push_back(fmt::format("{}: {}", path.string(), failure.what()));
    }
  }
  return modules;
}

}  // namespace tandem
