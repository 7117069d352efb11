#include "core/train/data_watch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

namespace tandem {

DataWatch::DataWatch(std::string source, std::vector<Watched> watched)
    : source_(std::move(source)), identity_(identity_of(source_)), watched_(std::move(watched)) {}

// Zeros if there is none.
DataWatch::Identity DataWatch::identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {0, 0};
  return {status.st_dev, status.st_ino};
}

std::vector<std::string> DataWatch::news(bool all) {
  std::vector<std::string> lines;
  const Identity now = identity_of(source_);
  if (now != identity_) {
    identity_ = now;
    has_said_written_ = true;  // all files are others
    lines.push_back(fmt::format(
        "data '{}' were replaced or removed while training: what follows may be of other images",
        source_));
  }
  if (!has_said_written_) {
    const std::string written = written_files(all);
    has_said_written_ = !written.empty();
    if (has_said_written_) lines.push_back(written);
  }
  ++looks_;
  return lines;
}

std::string DataWatch::written_files(bool all) const {
  constexpr size_t some = 1000;
  size_t changed = 0, looked_at = 0;
  std::string example;
  for (const Watched& one : watched_) {
    const size_t step = all ? 1 : one.files.size() / some + 1;
    if (one.files.empty()) continue;
    const size_t first = looks_ % step;
    const std::vector<FileState> now =
        file_states(*one.dataset, static_cast<int64_t>(first), static_cast<int64_t>(step));
    looked_at += now.size();
    for (size_t i = 0; i < now.size(); ++i) {
      const size_t sample = first + i * step;
      if (now[i] == one.files[sample]) continue;
      if (changed++ == 0) example = one.dataset->sample_name(static_cast<int64_t>(sample));
    }
  }
  if (changed == 0) return "";
  return fmt::format(
      "{} of {} files looked at in data '{}' {} written, replaced or removed while training, as "
      "'{}': the run has read, or will read, other images than at its start",
      changed, looked_at, source_, changed == 1 ? "was" : "were", example);
}

}  // namespace tandem
