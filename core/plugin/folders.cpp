#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/strings.h"
#include "core/plugin/program_plugins.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

std::filesystem::path program_folder() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
}

// Where the code of this function lies: libtandem-core, or the program it was linked into.
std::filesystem::path library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&program_folder), &info) == 0) return {};
  std::error_code failure;
  return std::filesystem::canonical(info.dli_fname, failure).parent_path();
}

}  // namespace

std::vector<std::filesystem::path> Registry::default_folders() {
  std::vector<std::filesystem::path> folders;
  const auto add = [&](const std::filesystem::path& folder) {
    const auto path = std::filesystem::absolute(folder).lexically_normal();
    if (std::find(folders.begin(), folders.end(), path) == folders.end()) folders.push_back(path);
  };
  for (const std::filesystem::path& folder : program_plugins().folders) add(folder);
  if (const char* listed = std::getenv("TANDEM_PLUGIN_PATH")) {
    for (const std::string& folder : split(listed, ':')) {
      if (!folder.empty()) add(folder);
    }
  }
  const std::filesystem::path program = program_folder();
  const std::filesystem::path library = library_folder();
  if (!program.empty()) add(program / "../lib/tandem/plugins");
  if (!library.empty()) add(library / "../lib/tandem/plugins");
  if (!library.empty()) add(library / "tandem/plugins");
  return folders;
}

}  // namespace tandem
