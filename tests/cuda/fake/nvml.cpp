// A stand-in for NVIDIA's management library, for GPUs 0000:00:00.0 to 0000:02:00.0. The first has
// two NVLinks to the second, one to a GPU that is not asked for, one that is down, and one to a
// switch. Those of the third are as a virtual machine may report them: no information about the
// other end, an invalid id, and a hidden GPU.
#include <cstring>

namespace {

constexpr int success = 0, failure = 999;
constexpr unsigned links = 5, hidden_links = 3;
constexpr int gpu_type = 0, switch_type = 2, unknown_type = 255;

struct PciInfo {
  char old_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

bool is_open = false;
char first, second, third;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  is_open = true;
  return success;
}
int nvmlShutdown() {
  is_open = false;
  return success;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (!is_open) return failure;
  *device = std::strcmp(id, "0000:00:00.0") == 0   ? &first
            : std::strcmp(id, "0000:01:00.0") == 0 ? &second
            : std::strcmp(id, "0000:02:00.0") == 0 ? &third
                                                   : nullptr;
  return *device == nullptr ? failure : success;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* is_active) {
  const unsigned all = device == &first ? links : device == &third ? hidden_links : 0;
  if (link >= all) return failure;
  *is_active = device == &first && link == 3 ? 0 : 1;
  return success;
}
// NVML's numbers: 5 is NVLink 3.1, 6 is 4.0, 7 is 5.0.
int nvmlDeviceGetNvLinkVersion(void* device, unsigned link, unsigned* version) {
  *version = device == &third ? 5 + link : link == 0 ? 1 : link == 4 ? 5 : 2;
  return success;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* info) {
  if (device == &third) {
    std::strcpy(info->bus_id, "FFFFFFF:FFFF:FF.0");
    return link == 1 ? success : failure;
  }
  std::strcpy(info->bus_id, link < 2 ? "00000000:01:00.0" : link == 2 ? "00000000:0A:00.0" : "");
  return link == 4 ? failure : success;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, int* type) {
  if (device == &third) {
    *type = link == 1 ? unknown_type : gpu_type;
    return link == 0 ? failure : success;
  }
  *type = link == 4 ? switch_type : gpu_type;
  return success;
}

}  // extern "C"
