// A stand-in for NVIDIA's management library, for GPUs 0000:00:00.0 and 0000:01:00.0: the first has
// two NVLinks to the second, one to a GPU that nobody asks for, one that is down, and one to a
// switch.
#include <cstring>

namespace {

constexpr int success = 0, failure = 999;
constexpr unsigned links = 5;

struct PciInfo {
  char old_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

bool is_open = false;
char first, second;

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
                                                   : nullptr;
  return *device == nullptr ? failure : success;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* is_active) {
  if (device != &first || link >= links) return failure;
  *is_active = link == 3 ? 0 : 1;
  return success;
}
int nvmlDeviceGetNvLinkVersion(void*, unsigned link, unsigned* version) {
  *version = link == 0 ? 1 : link == 4 ? 5 : 2;
  return success;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned link, PciInfo* info) {
  std::strcpy(info->bus_id, link < 2 ? "00000000:01:00.0" : link == 2 ? "00000000:0A:00.0" : "");
  return link == 4 ? failure : success;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned link, int* type) {
  *type = link == 4 ? 2 : 0;
  return success;
}

}  // extern "C"
