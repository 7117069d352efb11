#include "core/data/fingerprint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/files/crc32.h"
#include "core/base/files/files.h"
#include "core/base/parallel.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

constexpr int64_t max_contents = 64;
constexpr int64_t few = 2000;  // files, of which one is looked at after another

int64_t described_sample(int64_t number, const Dataset& dataset) {
  return number * dataset.size() / std::min(max_contents, dataset.size());
}

// The length of the folder, with its slash, that all names begin with.
size_t shared_folder(const Dataset& dataset) {
  std::string shared = dataset.sample_name(0);
  for (int64_t i = 1; i < dataset.size() && !shared.empty(); ++i) {
    const std::string name = dataset.sample_name(i);
    const auto differ = std::mismatch(shared.begin(), shared.end(), name.begin(), name.end()).first;
    shared.erase(differ, shared.end());
  }
  return shared.rfind('/') + 1;  // npos + 1 is 0
}

uint32_t checksum_of_names(const Dataset& dataset) {
  const size_t folder = shared_folder(dataset);
  uint32_t checksum = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const std::string name = dataset.sample_name(i);
    // With the byte after it, which ends it.
    checksum = crc32(name.c_str() + folder, name.size() - folder + 1, checksum);
  }
  return checksum;
}

std::vector<uint64_t> contents_of(const Dataset& dataset) {
  std::vector<uint64_t> contents;
  const int64_t count = std::min(max_contents, dataset.size());
  for (int64_t i = 0; i < count; ++i) {
    std::string reason;
    const auto stored = dataset.describe(described_sample(i, dataset), &reason);
    if (!stored && reason.empty()) return {};  // it describes none
    contents.push_back(stored ? stored->content : 0);
  }
  return contents;
}

FileState file_state(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  constexpr int64_t nanos = 1'000'000'000;
  return {status.st_size, status.st_mtim.tv_sec * nanos + status.st_mtim.tv_nsec};
}

// Of every `step`-th of `size` files, from `first` on.
std::vector<FileState> states_of(const std::function<std::string(int64_t)>& name, int64_t size,
                                 int64_t first, int64_t step) {
  const int64_t count = std::max<int64_t>(0, (size - first + step - 1) / step);
  std::vector<FileState> states(static_cast<size_t>(count));
  // Over a network many answers are waited for at a time.
  parallel_for(count, count < few ? 1 : 8,
               [&](int64_t i, int) { states[size_t(i)] = file_state(name(first + i * step)); });
  return states;
}

struct Changes {
  size_t count = 0, first = 0;  // the number of the first one
};

// `now`: of every `step`-th value, from `first` on.
template <class Value>
Changes changes(const std::vector<Value>& before, const std::vector<Value>& now, size_t first = 0,
                size_t step = 1) {
  Changes found;
  for (size_t i = 0; i < now.size(); ++i) {
    const size_t number = first + i * step;
    if (before[number] != now[i] && found.count++ == 0) found.first = number;
  }
  return found;
}

}  // namespace

std::string text_summary(const std::string& text) {
  return fmt::format("{} bytes, checksum {:08x}", text.size(), crc32c(text.data(), text.size()));
}

std::string file_contents(const std::string& path) {
  std::error_code code;
  if (path.empty() || !path_status(path).is_file()) return "";
  const uintmax_t bytes = std::filesystem::file_size(path, code);
  if (code) return "";
  if (bytes > max_text_bytes) return fmt::format("{} bytes", bytes);
  try {
    return text_summary(read_text_file(path));
  } catch (const Error&) {
    return "";  // who needs the file says why
  }
}

Fingerprint fingerprint_of(const Dataset& dataset, const std::vector<FileState>& files) {
  Fingerprint result;
  result.names = checksum_of_names(dataset);
  for (const FileState& file : files) {
    result.sizes = crc32(&file.bytes, sizeof(file.bytes), result.sizes);
    result.bytes += std::max<int64_t>(0, file.bytes);
  }
  result.contents = contents_of(dataset);
  return result;
}

bool share_samples(const Fingerprint& one, const Fingerprint& other) {
  if (one.contents.empty() || other.contents.empty()) return one.names == other.names;
  return std::any_of(one.contents.begin(), one.contents.end(), [&](uint64_t content) {
    const auto& others = other.contents;
    return content != 0 && std::find(others.begin(), others.end(), content) != others.end();
  });
}

bool same_samples(const Fingerprint& one, const Fingerprint& other) {
  if (one.contents.empty() || other.contents.empty()) return one.names == other.names;
  return one.contents == other.contents;
}

std::string difference(const Fingerprint& before, const Fingerprint& now, const Dataset& dataset,
                       const char* other) {
  std::vector<std::string> parts;
  if (before.names != now.names) parts.emplace_back("other names");
  if (before.bytes != now.bytes) {
    parts.push_back(
        fmt::format("{} in all, {} {}", human_bytes(now.bytes), human_bytes(before.bytes), other));
  } else if (before.sizes != now.sizes) {
    parts.emplace_back("other sizes");
  }
  const bool are_comparable = before.contents.size() == now.contents.size();
  const Changes others = are_comparable ? changes(before.contents, now.contents) : Changes{};
  if (others.count > 0) {
    const auto first = static_cast<int64_t>(others.first);
    parts.push_back(fmt::format("{} of {} looked at {} other contents, as '{}'", others.count,
                                now.contents.size(), others.count == 1 ? "has" : "have",
                                dataset.sample_name(described_sample(first, dataset))));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<FileState> file_states(const Dataset& dataset) {
  const auto name = [&](int64_t i) { return dataset.sample_name(i); };
  // The samples of a pack have names too, and are many: a part of them tells.
  const int64_t step = dataset.size() / few + 1;
  std::vector<FileState> part = states_of(name, dataset.size(), 0, step);
  const auto is_file = [](const FileState& one) { return one.bytes >= 0; };
  if (std::none_of(part.begin(), part.end(), is_file)) return {};
  return step == 1 ? part : states_of(name, dataset.size(), 0, 1);
}

DataWatch::DataWatch(std::string source, std::vector<Watched> watched)
    : source_(std::move(source)), identity_(identity_of(source_)) {
  constexpr int64_t looked_at = 1000;
  std::vector<std::string> samples;  // that are no files of their own
  for (Watched& one : watched) {
    if (one.dataset == nullptr) continue;
    const auto name = [data = one.dataset](int64_t i) { return data->sample_name(i); };
    if (!one.files.empty()) {
      files_.push_back({name, std::move(one.files), false});
      continue;
    }
    const int64_t step = one.dataset->size() / looked_at + 1;
    for (int64_t i = 0; i < one.dataset->size(); i += step) samples.push_back(name(i));
  }
  if (!samples.empty()) files_.push_back(files_with(samples));
}

// Zeros if there is none.
DataWatch::Identity DataWatch::identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {0, 0};
  return {status.st_dev, status.st_ino};
}

DataWatch::Files DataWatch::files_with(const std::vector<std::string>& samples) const {
  std::vector<std::string> names;
  std::vector<FileState> states;
  const auto add = [&](const std::string& file) {
    const FileState state = file_state(file);
    if (state.bytes < 0) return;
    names.push_back(file);
    states.push_back(state);
  };
  add(source_);
  std::error_code ignored;  // a disk that fails is told of where images are read
  for (const std::filesystem::path& entry : entries_of(source_, ignored)) {
    const std::string file = entry.string();
    const bool is_named = std::any_of(samples.begin(), samples.end(),
                                      [&](const auto& sample) { return sample.starts_with(file); });
    if (is_named) add(file);
  }
  return {[names](int64_t i) { return names[size_t(i)]; }, states, true};
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
  for (const auto& [name, before, are_shared] : files_) {
    const size_t step = all || are_shared ? 1 : before.size() / some + 1;
    const size_t first = looks_ % step;
    const std::vector<FileState> now = states_of(
        name, std::ssize(before), static_cast<int64_t>(first), static_cast<int64_t>(step));
    const Changes found = changes(before, now, first, step);
    if (changed == 0 && found.count > 0) example = name(static_cast<int64_t>(found.first));
    changed += found.count;
    looked_at += now.size();
  }
  if (changed == 0) return "";
  return fmt::format(
      "{} of {} files looked at in data '{}' {} written, replaced or removed while training, as "
      "'{}': the run has read, or will read, other images than at its start",
      changed, looked_at, source_, changed == 1 ? "was" : "were", example);
}

}  // namespace tandem
