// The cpu backend without its optional functions: it cannot convert bytes to floats. It has the
// name of the real one and is found first.
#include <dlfcn.h>

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
  backend = *entry(host)->backends[0];
  backend.convert_pixels = nullptr;
  backend.find_topology = nullptr;
  backend.copy_rows = nullptr;
  plugin.abi_major = TANDEM_ABI_MAJOR;
  plugin.abi_minor = TANDEM_ABI_MINOR;
  plugin.struct_size = sizeof plugin;
  plugin.name = "old-backend";
  plugin.version = "0";
  plugin.backends = backends;
  plugin.backend_count = 1;
  return &plugin;
}
