#include "plugins/cpu/hardware.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "plugins/cpu/arm_cores.h"
#include "plugins/cpu/control_groups.h"
#include "plugins/processors.h"

namespace tandem::cpu {

namespace {

// The text after the colon of the first line of /proc/cpuinfo that begins with `key`.
std::string processor_entry(const std::string& key) {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

double clock_hertz() {
  std::ifstream highest("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  double kilohertz = 0;
  if (highest >> kilohertz && kilohertz > 0) return kilohertz * 1e3;
  const double megahertz = std::atof(processor_entry("cpu MHz").c_str());
  return megahertz > 0 ? megahertz * 1e6 : 2.5e9;
}

ArmProcessor arm_processor() {
  std::ifstream stream("/proc/cpuinfo");
  return read_arm_processor(stream);
}

// Two vector units with fused multiply-add, as in most cores since 2015.
double flops_per_cycle() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
  if (__builtin_cpu_supports("avx")) return 16;
  return 8;
#else
  const double known = arm_processor().flops_per_cycle;
  return known > 0 ? known : 16;
#endif
}

}  // namespace

int32_t core_count() {
  const auto allowed = static_cast<int32_t>(allowed_processors().size());
  int32_t cores = allowed > 0 ? allowed : get_nprocs();
  for (const ProcessorQuota& quota : processor_quotas()) {
    cores = std::min<int32_t>(cores, whole_processors(quota.processors));
  }
  return std::max<int32_t>(1, cores);
}

MemoryState memory_state() {
  MemoryState state;
  std::ifstream stream("/proc/meminfo");
  std::string key;
  for (int64_t kibibytes = 0; stream >> key >> kibibytes; std::getline(stream, key)) {
    if (key == "MemTotal:") state.total = kibibytes * 1024;
    if (key == "MemAvailable:") state.available = kibibytes * 1024;
  }
  if (state.total == 0) {  // no /proc here; what caches can give back is not known then
    struct sysinfo known {};
    if (::sysinfo(&known) == 0)
      state.total = state.available = int64_t(known.totalram) * known.mem_unit;
  }
  if (const auto group = memory_limit()) {
    state.total = std::min(state.total, group->limit);
    state.available = std::min(state.available, std::max<int64_t>(0, group->limit - group->used));
  }
  return state;
}

tandem_device_info describe(int32_t threads) {
  constexpr double bandwidth_per_core = 30e9, bandwidth_of_socket = 200e9;
  tandem_device_info info{};
  info.struct_size = sizeof info;
  std::string name = processor_entry("model name");
  if (name.empty()) name = arm_processor().name;
  if (name.empty()) name = "unknown processor";
  std::strncpy(info.name, name.c_str(), sizeof info.name - 1);
  const MemoryState memory = memory_state();
  info.memory_bytes = memory.total;
  info.available_bytes = memory.available;
  info.threads = threads;
  info.peak_flops = threads * clock_hertz() * flops_per_cycle();
  info.memory_bandwidth = std::min(bandwidth_of_socket, threads * bandwidth_per_core);
  return info;
}

}  // namespace tandem::cpu
