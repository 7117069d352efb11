// The cores of an Arm processor. The kernel gives no name for them, but for each core the numbers
// of its designer and of its design.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <istream>
#include <string>

namespace tandem::cpu {

// Vectors are NEON's, of 4 floats.
struct ArmCore {
  int32_t implementer, part;
  const char* name;
  int32_t vector_units;  // that multiply and add
};

inline constexpr ArmCore arm_cores[] = {
    {0x41, 0xd03, "Cortex-A53", 1},  {0x41, 0xd05, "Cortex-A55", 1},
    {0x41, 0xd07, "Cortex-A57", 1},  {0x41, 0xd08, "Cortex-A72", 1},
    {0x41, 0xd09, "Cortex-A73", 1},  {0x41, 0xd0a, "Cortex-A75", 1},
    {0x41, 0xd0b, "Cortex-A76", 2},  {0x41, 0xd0c, "Neoverse N1", 2},
    {0x41, 0xd0d, "Cortex-A77", 2},  {0x41, 0xd40, "Neoverse V1", 4},
    {0x41, 0xd41, "Cortex-A78", 2},  {0x41, 0xd42, "Cortex-A78AE", 2},
    {0x41, 0xd44, "Cortex-X1", 4},   {0x41, 0xd49, "Neoverse N2", 2},
    {0x41, 0xd4b, "Cortex-A78C", 2}, {0x41, 0xd4f, "Neoverse V2", 4},
    {0x41, 0xd84, "Neoverse V3", 4}, {0x41, 0xd8e, "Neoverse N3", 2},
    {0x43, 0x0af, "ThunderX2", 2},   {0x46, 0x001, "A64FX", 2},
    {0x48, 0xd01, "Kunpeng 920", 2}, {0x4e, 0x004, "Carmel", 2},
    {0x61, 0x022, "Apple M1", 4},    {0x61, 0x023, "Apple M1", 4},
    {0x61, 0x032, "Apple M2", 4},    {0x61, 0x033, "Apple M2", 4},
    {0xc0, 0xac3, "AmpereOne", 2},   {0xc0, 0xac4, "AmpereOne", 2},
};

// Of all cores in /proc/cpuinfo, of which a processor may have several kinds.
struct ArmProcessor {
  std::string name;            // "Cortex-A55, Cortex-A76"; "" without any core of Arm
  double flops_per_cycle = 0;  // of a core on average
};

inline ArmProcessor read_arm_processor(std::istream& cpuinfo) {
  ArmProcessor processor;
  std::string designer;
  int64_t implementer = 0, units = 0, cores = 0;
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    const int64_t number = std::strtol(value.c_str(), nullptr, 0);
    if (line.starts_with("CPU implementer")) {
      implementer = number;
      designer = value;
    }
    if (!line.starts_with("CPU part")) continue;
    const ArmCore* known = std::find_if(
        std::begin(arm_cores), std::end(arm_cores),
        [&](auto& core) { return core.implementer == implementer && core.part == number; });
    const bool is_known = known != std::end(arm_cores);
    const std::string name = is_known ? known->name : "core " + value + " of designer " + designer;
    units += is_known ? known->vector_units : 2;
    ++cores;
    if (processor.name.find(name) == std::string::npos) {
      processor.name += (processor.name.empty() ? "" : ", ") + name;
    }
  }
  if (cores > 0) processor.flops_per_cycle = 8.0 * double(units) / double(cores);
  return processor;
}

}  // namespace tandem::cpu
