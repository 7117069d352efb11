// How many processors a process computes with: those that it may use (plugins/processors.h),
// divided among the processes of a job that share them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plugins/processors.h"

namespace tandem {

// What a process may use.
struct ProcessorUse {
  std::string machine;                 // the same text in all processes of a machine
  int of_machine = 1;                  // the processors that it has
  std::vector<int> allowed;            // by number: those of the process's affinity
  std::vector<ProcessorQuota> quotas;  // of the process's control groups
};

// This process's. `root`: the folder of /proc and /sys.
[[nodiscard]] ProcessorUse own_processors(const std::filesystem::path& root = "/");

// Those of users[index], at least 1, when all `users` compute at the same time: each processor and
// each quota is divided among the processes that may use it.
[[nodiscard]] int processor_share(const std::vector<ProcessorUse>& users, size_t index);

// "4 of this machine's 64 (bound to 16, a quota of 3.5)": those of users[index], and why all
// `users` on its machine together may not use all of it; "" if they may.
[[nodiscard]] std::string processor_limits(const std::vector<ProcessorUse>& users, size_t index);

}  // namespace tandem
