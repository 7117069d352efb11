#include "core/run/data_watch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "core/base/files/files.h"

namespace tandem {

DataWatch::DataWatch(std::string source, std::vector<Watched> watched)
    : source_(std::move(source)),
      identity_(identity_of(source_)),
      watched_(std::move(watched)),
      shared_files_(files_of_samples()) {}

// Zeros if there is none.
DataWatch::Identity DataWatch::identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {0, 0};
  return {status.st_dev, status.st_ino};
}

std::map<std::string, FileState> DataWatch::files_of_samples() const {
  constexpr int64_t looked_at = 1000;
  std::vector<std::string> samples;
  for (const Watched& one : watched_) {
    if (one.dataset == nullptr || !one.files.empty()) continue;
    const int64_t step = one.dataset->size() / looked_at + 1;
    for (int64_t i = 0; i < one.dataset->size(); i += step) {
      samples.push_back(one.dataset->sample_name(i));
    }
  }
  std::map<std::string, FileState> files;
  if (samples.empty()) return files;
  const FileState whole = file_state(source_);
  if (whole.bytes >= 0) files.emplace(source_, whole);
  std::error_code ignored;  // a disk that fails is told of where images are read
  for (const std::filesystem::path& entry : entries_of(source_, ignored)) {
    const std::string file = entry.string();
    const bool is_named = std::any_of(samples.begin(), samples.end(),
                                      [&](const auto& sample) { return sample.starts_with(file); });
    if (const FileState state = file_state(file); is_named && state.bytes >= 0) {
      files.emplace(file, state);
    }
  }
  return files;
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
  const auto compare = [&](const FileState& before, const FileState& now, const auto& name) {
    ++looked_at;
    if (before != now && changed++ == 0) example = name();
  };
  for (const Watched& one : watched_) {
    const size_t step = all ? 1 : one.files.size() / some + 1;
    if (one.files.empty()) continue;
    const size_t first = looks_ % step;
    const std::vector<FileState> now =
        file_states(*one.dataset, static_cast<int64_t>(first), static_cast<int64_t>(step));
    for (size_t i = 0; i < now.size(); ++i) {
      const size_t sample = first + i * step;
      compare(one.files[sample], now[i],
              [&] { return one.dataset->sample_name(static_cast<int64_t>(sample)); });
    }
  }
  for (const auto& [file, before] : shared_files_) {
    compare(before, file_state(file), [&name = file] { return name; });
  }
  if (changed == 0) return "";
  return fmt::format(
      "{} of {} files looked at in data '{}' {} written, replaced or removed while training, as "
      "'{}': the run has read, or will read, other images than at its start",
      changed, looked_at, source_, changed == 1 ? "was" : "were", example);
}

}  // namespace tandem
