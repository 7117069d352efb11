#include "core/plugin/trust.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <system_error>

#include "core/base/files/files.h"

namespace tandem {

namespace fs = std::filesystem;

namespace {

bool anyone_may_write(const fs::path& path) {
  const PathStatus status = path_status(path);
  return status.exists() && (status.system().st_mode & S_IWOTH) != 0;
}

}  // namespace

fs::path resolved(const fs::path& path) {
  std::error_code failure;
  const auto canonical = fs::weakly_canonical(path, failure);
  return failure ? path : canonical;
}

std::string why_not_trusted(const fs::path& module) {
  const char* trusted = std::getenv("TANDEM_TRUST_PLUGINS");
  if (trusted != nullptr && std::string_view(trusted) == "1") return "";
  const fs::path target = resolved(module);
  for (const fs::path& path : {module.parent_path(), target.parent_path(), target}) {
    if (!anyone_may_write(path)) continue;
    return fmt::format(
        "every user of this machine may write to {}: chmod o-w '{}', or set "
        "TANDEM_TRUST_PLUGINS=1",
        path == target ? "it" : "its folder", path.string());
  }
  return "";
}

}  // namespace tandem
