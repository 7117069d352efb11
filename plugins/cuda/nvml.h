// NVLinks as NVIDIA's management library reports them. The library comes with the driver and is
// loaded when it is needed; its header is not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::cuda {

// One active NVLink of a GPU.
struct NvLink {
  std::string remote;    // the other end, as "0000:04:00.0"; "": hidden
  double bandwidth = 0;  // in one direction, bytes per second
  bool leads_to_switch = false;
  bool is_of_unknown_type = false;  // the other end may be a switch or not
};

struct NvLinks {
  bool are_known = false;                  // the library was found and knows all GPUs
  std::vector<std::vector<NvLink>> links;  // by GPU
};

// For the GPUs with these PCI ids.
[[nodiscard]] NvLinks find_nvlinks(const std::vector<std::string>& ids,
                                   const char* library = "libnvidia-ml.so.1");

}  // namespace tandem::cuda
