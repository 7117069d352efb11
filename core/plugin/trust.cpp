#include "core/plugin/trust.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/files/files.h"

namespace tandem {

namespace fs = std::filesystem;

namespace {

uid_t owner_of_root() {
  const PathStatus root = path_status("/");
  return root.exists() ? root.system().st_uid : 0;
}

// A group that has the name of the owner has no other members, unless it lists some.
bool is_private_group(const struct stat& status) {
  const passwd* owner = ::getpwuid(status.st_uid);
  const std::string name = owner == nullptr ? "" : owner->pw_name;
  const group* found = ::getgrgid(status.st_gid);
  if (found == nullptr || name != found->gr_name) return false;
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (name != *member) return false;
  }
  return true;
}

// Who else than root and the user may change what is at the path, and the fix; "": nobody. In a
// folder with the sticky bit (/tmp) others may change nothing of what is there already.
std::string weakness(const fs::path& path, const std::string& called, bool sticky_is_safe) {
  const PathStatus found = path_status(path);
  if (!found.exists()) return "";
  const struct stat& status = found.system();
  const auto refused = [&](const std::string& who, const char* fix) {
    return fmt::format("{} {}: {} '{}'", who, called, fix, path.string());
  };
  if (status.st_uid != 0 && status.st_uid != ::geteuid() && status.st_uid != owner_of_root()) {
    return refused(fmt::format("user {}, neither root nor you, owns", status.st_uid), "chown root");
  }
  if (sticky_is_safe && (status.st_mode & S_ISVTX) != 0) return "";
  if ((status.st_mode & S_IWOTH) != 0) {
    return refused("every user of this machine may write to", "chmod o-w");
  }
  if ((status.st_mode & S_IWGRP) != 0 && !is_private_group(status)) {
    return refused(fmt::format("every member of group {} may write to", status.st_gid),
                   "chmod g-w");
  }
  return "";
}

std::string weakness_of_folders(const fs::path& folder) {
  std::string weak = weakness(folder, "its folder", false);
  for (fs::path above = folder; weak.empty() && above != above.parent_path();) {
    above = above.parent_path();
    weak = weakness(above, "a folder above it", true);
  }
  return weak;
}

bool anyone_may_write(const fs::path& path) {
  const PathStatus status = path_status(path);
  return status.exists() && (status.system().st_mode & S_IWOTH) != 0;
}

// Whoever may write to the folders above Tandem's own modules may write to its programs, too.
std::string weakness_of_own(const fs::path& module, const fs::path& target) {
  for (const fs::path& path : {module.parent_path(), target.parent_path(), target}) {
    if (!anyone_may_write(path)) continue;
    return fmt::format("every user of this machine may write to {}: chmod o-w '{}'",
                       path == target ? "it" : "its folder", path.string());
  }
  return "";
}

}  // namespace

fs::path resolved(const fs::path& path) {
  std::error_code failure;
  const auto canonical = fs::weakly_canonical(path, failure);
  return failure ? path : canonical;
}

std::string why_not_trusted(const fs::path& module, bool is_own) {
  const char* trusted = std::getenv("TANDEM_TRUST_PLUGINS");
  if (trusted != nullptr && std::string_view(trusted) == "1") return "";
  const fs::path target = resolved(module);
  std::string weak = is_own ? weakness_of_own(module, target) : weakness(target, "it", false);
  if (!is_own && weak.empty()) weak = weakness_of_folders(absolute_path(module).parent_path());
  if (!is_own && weak.empty()) weak = weakness_of_folders(target.parent_path());
  return weak.empty() ? "" : weak + ", or set TANDEM_TRUST_PLUGINS=1";
}

}  // namespace tandem
