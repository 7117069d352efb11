// What is at a path, after links. A path that leads nowhere, or where the user may not go, has
// nothing. A disk that fails is told apart: what it holds must not count as absent, since the
// result of a run would depend on it.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "plugins/regular_file.h"

namespace tandem {

class PathStatus {
 public:
  explicit PathStatus(const std::string& path) {
    const auto looked_up = [&] { return ::stat(path.c_str(), &status_); };
    if (RegularFile::repeated(looked_up) == 0) {
      exists_ = true;
    } else if (RegularFile::is_failure(errno)) {
      failure_ = errno;
    }
  }

  // 0, or the number of errno of a disk or system that fails; then nothing else is known.
  [[nodiscard]] int failure() const { return failure_; }
  [[nodiscard]] bool exists() const { return exists_; }
  [[nodiscard]] bool is_file() const { return exists_ && S_ISREG(status_.st_mode); }
  [[nodiscard]] bool is_folder() const { return exists_ && S_ISDIR(status_.st_mode); }
  // If it exists.
  [[nodiscard]] const struct stat& system() const { return status_; }

 private:
  struct stat status_ {};
  bool exists_ = false;
  int failure_ = 0;
};

}  // namespace tandem
