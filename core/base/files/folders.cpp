#include "core/base/files/folders.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/base/text/strings.h"

namespace tandem {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code failure;
  return fs::read_symlink("/proc/self/exe", failure).parent_path();
}

fs::path library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&program_folder), &info) == 0) return {};
  std::error_code failure;
  return fs::canonical(info.dli_fname, failure).parent_path();
}

std::vector<fs::path> listed_folders(const char* variable) {
  std::vector<fs::path> folders;
  const char* list = std::getenv(variable);
  for (const std::string& folder : split(list == nullptr ? "" : list, ':')) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

}  // namespace tandem
