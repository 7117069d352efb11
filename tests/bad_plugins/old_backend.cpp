// The cpu backend as one of ABI 1.3, which could not convert bytes to floats. It has the name of
// the real one and is found first.
#include <dlfcn.h>

#include <cstddef>
#include <cstring>

#include "plugins/abi.h"
#include "plugins/sdk.h"

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_backend backend{};
  static const tandem_backend* backends[] = {&backend};
  static tandem_plugin plugin{};
  void* library = dlopen(TANDEM_CPU_BACKEND, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    host->explain(dlerror());
    return nullptr;
  }
  const auto entry =
      reinterpret_cast<tandem_plugin_entry_function>(dlsym(library, TANDEM_ENTRY_SYMBOL));
  constexpr size_t size = offsetof(tandem_backend, convert_pixels);
  std::memcpy(&backend, entry(host)->backends[0], size);
  backend.struct_size = size;
  plugin.abi_major = TANDEM_ABI_MAJOR;
  plugin.abi_minor = 3;
  plugin.struct_size = sizeof plugin;
  plugin.name = "old-backend";
  plugin.version = "0";
  plugin.backends = backends;
  plugin.backend_count = 1;
  return &plugin;
}
