// The links between GPUs that the stand-in for CUDA reports. TANDEM_FAKE_LINKS lists pairs, as
// "01n0 12p1": GPUs 0 and 1 have NVLink of rank 0, 1 and 2 have P2P of rank 1, all others have no
// P2P; if unset, all have P2P. TANDEM_FAKE_PCI: a folder that replaces /sys/bus/pci/devices, where
// GPU n is 00fa:0n:00.0.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace {

// The entry of TANDEM_FAKE_LINKS for a pair: 'n', 'p', or ' ' for none, and its rank.
std::pair<char, int> link_between(int source, int target) {
  const char* value = std::getenv("TANDEM_FAKE_LINKS");
  if (value == nullptr) return {'p', 0};
  const std::string links(value);
  for (size_t at = 0; at + 3 < links.size(); at += 5) {
    const int a = links[at] - '0', b = links[at + 1] - '0';
    if ((a != source || b != target) && (a != target || b != source)) continue;
    return {links[at + 2], links[at + 3] - '0'};
  }
  return {' ', 0};
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceCanAccessPeer(int* can, int gpu, int peer) {
  *can = link_between(gpu, peer).first == ' ' ? 0 : 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr which, int source, int target) {
  if (source == target) return cudaErrorInvalidDevice;
  const auto [kind, rank] = link_between(source, target);
  *value = which == cudaDevP2PAttrPerformanceRank         ? rank
           : which == cudaDevP2PAttrAccessSupported       ? static_cast<int>(kind != ' ')
           : which == cudaDevP2PAttrNativeAtomicSupported ? static_cast<int>(kind == 'n')
                                                          : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int room, int device) {
  std::snprintf(id, static_cast<size_t>(room), "00FA:%02X:00.0", device);
  return cudaSuccess;
}
// Replaces the C library's function.
char* realpath(const char* path, char* resolved) noexcept {
  static const auto real =
      reinterpret_cast<char* (*)(const char*, char*)>(dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3"));
  const std::string folder = "/sys/bus/pci/devices/", asked(path == nullptr ? "" : path);
  const char* fake = std::getenv("TANDEM_FAKE_PCI");
  if (fake == nullptr || !asked.starts_with(folder)) return real(path, resolved);
  return real((fake + ("/" + asked.substr(folder.size()))).c_str(), resolved);
}

}  // extern "C"
