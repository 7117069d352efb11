#include "core/data/fingerprint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/base/files/crc32.h"
#include "core/base/parallel.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

constexpr int64_t most_contents = 64;
constexpr int64_t few = 2000;  // files, of which one is looked at after another

int64_t described_sample(int64_t number, const Dataset& dataset) {
  const int64_t count = std::min(most_contents, dataset.size());
  return number * dataset.size() / count;
}

// The length of the folder, with its slash, that all names begin with.
size_t shared_folder(const Dataset& dataset) {
  std::string shared = dataset.sample_name(0);
  shared.resize(shared.rfind('/') + 1);  // npos + 1 is 0
  for (int64_t i = 1; i < dataset.size() && !shared.empty(); ++i) {
    const std::string name = dataset.sample_name(i);
    if (name.starts_with(shared)) continue;
    const auto differ = std::mismatch(shared.begin(), shared.end(), name.begin(), name.end()).first;
    shared.erase(differ, shared.end());
    shared.resize(shared.rfind('/') + 1);
  }
  return shared.size();
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
  const int64_t count = std::min(most_contents, dataset.size());
  for (int64_t i = 0; i < count; ++i) {
    std::string reason;
    const auto stored = dataset.describe(described_sample(i, dataset), &reason);
    if (!stored && reason.empty()) return {};  // it describes none
    contents.push_back(stored ? stored->content : 0);
  }
  return contents;
}

}  // namespace

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
  std::string example;
  int64_t others = 0;
  const size_t looked_at = now.contents.size();
  for (size_t i = 0; i < looked_at && before.contents.size() == looked_at; ++i) {
    if (before.contents[i] == now.contents[i]) continue;
    if (++others > 1) continue;
    example = dataset.sample_name(described_sample(static_cast<int64_t>(i), dataset));
  }
  if (others > 0) {
    parts.push_back(fmt::format("{} of {} looked at {} other contents, as '{}'", others, looked_at,
                                others == 1 ? "has" : "have", example));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

FileState file_state(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  constexpr int64_t nanos = 1'000'000'000;
  return {status.st_size, status.st_mtim.tv_sec * nanos + status.st_mtim.tv_nsec};
}

std::vector<FileState> file_states(const Dataset& dataset) {
  // The samples of a pack have names too, and are many: a part of them tells.
  const auto any = [](const std::vector<FileState>& states) {
    return std::any_of(states.begin(), states.end(),
                       [](const auto& one) { return one.bytes >= 0; });
  };
  const int64_t step = dataset.size() / few + 1;
  std::vector<FileState> part = file_states(dataset, 0, step);
  if (!any(part)) return {};
  return step == 1 ? part : file_states(dataset, 0, 1);
}

std::vector<FileState> file_states(const Dataset& dataset, int64_t first, int64_t step) {
  const int64_t count = std::max<int64_t>(0, (dataset.size() - first + step - 1) / step);
  std::vector<FileState> states(static_cast<size_t>(count));
  // Over a network many answers are waited for at a time.
  parallel_for(count, count < few ? 1 : 8, [&](int64_t i, int) {
    states[static_cast<size_t>(i)] = file_state(dataset.sample_name(first + i * step));
  });
  return states;
}

}  // namespace tandem
