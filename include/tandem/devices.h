// The devices of a program: how many cores they share, how they are connected and run.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

// What is given here is checked where it is used, which throws Error for a value that is wrong.
struct DeviceOptions {
  int threads = 0;       // cores that cpu devices share; 0: all
  std::string link;      // speed of copies: "bandwidth=4GB/s,latency=10us"; "": unlimited
  std::string topology;  // a file that `tandem devices --measure` writes, instead of `link`
  // A test mode: random delays of every stream, drawn with this seed; 0: none. They never change a
  // result.
  uint64_t delay_seed = 0;
  double delay_seconds = 0.001;  // the longest delay
};

// Whether steps run as captured graphs, which give the same bits. automatic: with one device, where
// its backend and all kernels can; `on` requires it of the backend only.
enum class GraphUse { off, automatic, on };

}  // namespace tandem
