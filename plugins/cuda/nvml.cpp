#include "plugins/cuda/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>

namespace tandem::cuda {

namespace {

using Device = void*;
using Status = int;
constexpr Status success = 0;
constexpr unsigned max_links = 18;
// nvmlIntNvLinkDeviceType_t.
constexpr int type_of_switches = 2, unknown_type = 255;

// nvmlPciInfo_t.
struct PciInfo {
  char old_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct Library {
  explicit Library(const char* name) : handle(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) return;
    find("nvmlInit_v2", init);
    find("nvmlShutdown", shutdown);
    find("nvmlDeviceGetHandleByPciBusId_v2", device_of);
    find("nvmlDeviceGetNvLinkState", state);
    find("nvmlDeviceGetNvLinkVersion", version);
    find("nvmlDeviceGetNvLinkRemotePciInfo_v2", remote);
    find("nvmlDeviceGetNvLinkRemoteDeviceType", remote_type);
    is_open = init != nullptr && shutdown != nullptr && device_of != nullptr && state != nullptr &&
              remote != nullptr && init() == success;
  }
  ~Library() {
    if (is_open) static_cast<void>(shutdown());
    if (handle != nullptr) dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle, name));
  }

  void* handle;
  bool is_open = false;
  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  Status (*device_of)(const char* id, Device*) = nullptr;
  Status (*state)(Device, unsigned link, int* is_active) = nullptr;
  Status (*version)(Device, unsigned link, unsigned* version) = nullptr;
  Status (*remote)(Device, unsigned link, PciInfo*) = nullptr;
  Status (*remote_type)(Device, unsigned link, int* type) = nullptr;
};

// The bandwidth of one direction of a link. NVML numbers the versions one after the other: 2.0 is
// 2, 2.2 is 3, 3.0 is 4, 3.1 is 5, 4.0 is 6, 5.0 is 7.
double bandwidth_of(unsigned version) {
  constexpr unsigned version_1_0 = 1, version_5_0 = 7;
  constexpr double first = 20e9, fifth = 50e9, between = 25e9;
  return version == version_1_0 ? first : version >= version_5_0 ? fifth : between;
}

// "00000000:04:00.0" in the form of sysfs and CUDA.
std::string short_id(const char* text) {
  std::string id(text);
  std::transform(id.begin(), id.end(), id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr size_t long_domain = 8, short_domain = 4;
  const size_t colon = id.find(':');
  return colon == long_domain ? id.substr(long_domain - short_domain) : id;
}

// Virtual machines that hide where a link leads may report "fffffff:ffff:ff.0".
bool is_hidden(const std::string& id) {
  const std::string digits = id.substr(0, id.find('.'));
  return digits.find_first_not_of("f:") == std::string::npos;
}

std::vector<NvLink> links_of(const Library& library, Device device) {
  std::vector<NvLink> links;
  for (unsigned link = 0; link < max_links; ++link) {
    int is_active = 0;
    if (library.state(device, link, &is_active) != success || is_active == 0) continue;
    unsigned version = 0;
    if (library.version != nullptr) static_cast<void>(library.version(device, link, &version));
    PciInfo info{};
    const bool is_explicit = library.remote(device, link, &info) == success;
    info.bus_id[sizeof info.bus_id - 1] = '\0';
    const std::string remote = is_explicit ? short_id(info.bus_id) : "";
    int type = unknown_type;
    if (library.remote_type == nullptr || library.remote_type(device, link, &type) != success) {
      type = unknown_type;
    }
    links.push_back({is_hidden(remote) ? "" : remote, bandwidth_of(version),
                     type == type_of_switches, type == unknown_type});
  }
  return links;
}

}  // namespace

NvLinks find_nvlinks(const std::vector<std::string>& ids, const char* name) {
  const Library library(name);
  NvLinks result;
  if (!library.is_open) return result;
  for (const std::string& id : ids) {
    Device device = nullptr;
    if (library.device_of(id.c_str(), &device) != success) return {};
    result.links.push_back(links_of(library, device));
  }
  result.are_known = true;
  return result;
}

}  // namespace tandem::cuda
