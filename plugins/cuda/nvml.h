// NVLinks as NVIDIA's management library tells of them. It comes with the driver and is looked for
// when it is asked; no header of it is needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::cuda {

// One active NVLink of a GPU.
struct NvLink {
  std::string remote;    // what it leads to, as "0000:04:00.0"; "": hidden
  double bandwidth = 0;  // in one direction, bytes per second
  bool leads_to_switch = false;
  bool is_of_unknown_type = false;  // what it leads to may be a switch or not
};

struct NvLinks {
  bool are_known = false;                  // the library is there, and knows all of the GPUs
  std::vector<std::vector<NvLink>> links;  // by GPU
};

// Of GPUs by their PCI ids.
[[nodiscard]] NvLinks find_nvlinks(const std::vector<std::string>& ids,
                                   const char* library = "libnvidia-ml.so.1");

}  // namespace tandem::cuda
