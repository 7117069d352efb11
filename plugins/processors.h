// The processors that this process may use: those of its affinity (taskset, mpirun, batch systems),
// and as many as the CPU quotas of its control groups allow (containers, batch systems; versions 1
// and 2). Nothing here fails: what cannot be read limits nothing.
#pragma once

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tandem {

// The folders of this process's control group and of its parents, of version 2 (controller "") or
// of a controller of version 1. In a container the path may be the host's; the root of the mount,
// which is always the last one, is still correct. `root`: the folder of /proc and /sys.
inline std::vector<std::filesystem::path> control_groups(const std::string& controller,
                                                         const std::filesystem::path& root = "/") {
  const auto is_ours = [&](const std::string& names) {
    std::istringstream stream(names);
    for (std::string one; std::getline(stream, one, ',');) {
      if (one == controller) return true;
    }
    return controller.empty() && names.empty();
  };
  const std::filesystem::path mount = root / "sys/fs/cgroup" / controller;
  std::ifstream groups(root / "proc/self/cgroup");
  std::vector<std::filesystem::path> result;
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    if (!is_ours(line.substr(first + 1, second - first - 1))) continue;
    for (std::filesystem::path group =
             std::filesystem::path(line.substr(second + 1)).relative_path();
         !group.empty(); group = group.parent_path()) {
      result.push_back(mount / group);
    }
  }
  result.push_back(mount);
  return result;
}

struct ProcessorQuota {
  std::string group;      // the same text in every process of this machine that it holds for
  double processors = 0;  // above 0, not always whole
};

inline std::vector<ProcessorQuota> processor_quotas(const std::filesystem::path& root = "/") {
  std::vector<ProcessorQuota> quotas;
  const auto take = [&](const std::filesystem::path& group, double quota, double period) {
    struct stat folder {};
    if (!(quota > 0) || !(period > 0) || ::stat(group.c_str(), &folder) != 0) return;
    quotas.push_back(
        {std::to_string(folder.st_dev) + ":" + std::to_string(folder.st_ino), quota / period});
  };
  double quota = 0, period = 0;
  for (const auto& group : control_groups("", root)) {
    if (std::ifstream(group / "cpu.max") >> quota >> period) take(group, quota, period);
  }
  for (const auto& group : control_groups("cpu", root)) {
    const bool is_read = (std::ifstream(group / "cpu.cfs_quota_us") >> quota) &&
                         (std::ifstream(group / "cpu.cfs_period_us") >> period);
    if (is_read) take(group, quota, period);
  }
  return quotas;
}

// The numbers of the processors that the calling thread may run on; none if they cannot be read.
inline std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  for (int size = CPU_SETSIZE; size <= 1 << 20; size *= 2) {
    std::vector<cpu_set_t> set(static_cast<size_t>(size / CPU_SETSIZE));
    const size_t bytes = set.size() * sizeof(cpu_set_t);
    if (::sched_getaffinity(0, bytes, set.data()) == 0) {
      for (int processor = 0; processor < size; ++processor) {
        if (CPU_ISSET_S(processor, bytes, set.data())) allowed.push_back(processor);
      }
      return allowed;
    }
    if (errno != EINVAL) break;  // else the machine may have more than `size`
  }
  return allowed;
}

// As many as a quota keeps busy: a part of a processor is one for part of the time.
inline int whole_processors(double quota) {
  return std::max(1, static_cast<int>(std::ceil(std::min(quota, 1e6))));
}

}  // namespace tandem
