#include "plugins/cpu/control_groups.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tandem::cpu {

namespace {

using std::filesystem::path;

// Whether `name` is one of the comma-separated names.
bool lists(const std::string& names, const std::string& name) {
  std::istringstream stream(names);
  for (std::string one; std::getline(stream, one, ',');) {
    if (one == name) return true;
  }
  return false;
}

// The folders of the group and its parents, of version 2 (controller "") or of a version 1
// controller. In a container the path may be the host's; the root of the mount, which is always the
// last one, is still correct.
std::vector<path> folders(const std::string& controller) {
  const path mount =
      controller.empty() ? path("/sys/fs/cgroup") : path("/sys/fs/cgroup") / controller;
  std::ifstream groups("/proc/self/cgroup");
  std::vector<path> result;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const bool ours = controller.empty() ? names.empty() : lists(names, controller);
    if (!ours) continue;
    for (path group = path(line.substr(second + 1)).relative_path(); !group.empty();
         group = group.parent_path()) {
      result.push_back(mount / group);
    }
  }
  result.push_back(mount);
  return result;
}

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
  for (const path& folder : folders(files.controller)) {
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

std::optional<double> core_quota() {
  std::optional<double> smallest;
  const auto take = [&](std::optional<double> quota, std::optional<double> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    smallest = std::min(smallest.value_or(*quota / *period), *quota / *period);
  };
  for (const path& folder : folders("")) {
    std::ifstream stream(folder / "cpu.max");
    double quota = 0, period = 0;
    if (stream >> quota >> period) take(quota, period);
  }
  for (const path& folder : folders("cpu")) {
    take(read_number(folder / "cpu.cfs_quota_us"), read_number(folder / "cpu.cfs_period_us"));
  }
  return smallest;
}

}  // namespace tandem::cpu
