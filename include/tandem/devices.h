// Options of the devices: the cores that they share, the links between them, how steps are issued.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

// Values are checked by the function that uses them, which throws Error for a wrong one.
struct DeviceOptions {
  int threads = 0;       // cores that cpu devices share; 0: all
  std::string link;      // speed of copies: "bandwidth=4GB/s,latency=10us"; "": unlimited
  std::string topology;  // a file that `tandem devices --measure` writes, instead of `link`
  // A test mode: random delays of every stream, drawn with this seed; 0: none. They never change a
  // result.
  uint64_t delay_seed = 0;
  double delay_seconds = 0.001;  // the longest delay
};

// Whether steps run as captured graphs, which give the same bits. automatic: on one device, if its
// backend and all kernels support it. on: if the backend supports it, else Error.
enum class GraphUse { off, automatic, on };

}  // namespace tandem
