#include "plugins/cpu/control_groups.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "plugins/processors.h"

namespace tandem::cpu {

namespace {

using std::filesystem::path;

// The number at the beginning of a file; none for "max" and for a file that cannot be read.
std::optional<double> read_number(const path& file) {
  std::ifstream stream(file);
  double value = 0;
  if (stream >> value) return value;
  return std::nullopt;
}

// The value of `key` in a file of "key value" lines; 0 if it is missing.
double read_entry(const path& file, const std::string& key) {
  std::ifstream stream(file);
  std::string name;
  for (double value = 0; stream >> name >> value;) {
    if (name == key) return value;
  }
  return 0;
}

struct MemoryFiles {
  const char *controller, *limit, *used, *reclaimable;
};

void tighten(std::optional<MemoryLimit>& tightest, const MemoryFiles& files) {
  constexpr double unlimited = 1e18;  // version 1 writes a huge number
  for (const path& folder : control_groups(files.controller)) {
    const auto limit = read_number(folder / files.limit);
    const auto used = read_number(folder / files.used);
    if (!limit || !used || *limit > unlimited) continue;
    const double kept =
        std::max(0.0, *used - read_entry(folder / "memory.stat", files.reclaimable));
    const MemoryLimit found{static_cast<int64_t>(*limit), static_cast<int64_t>(kept)};
    if (!tightest || found.limit - found.used < tightest->limit - tightest->used) tightest = found;
  }
}

}  // namespace

std::optional<MemoryLimit> memory_limit() {
  std::optional<MemoryLimit> tightest;
  tighten(tightest, {"", "memory.max", "memory.current", "inactive_file"});
  tighten(tightest,
          {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"});
  return tightest;
}

}  // namespace tandem::cpu
