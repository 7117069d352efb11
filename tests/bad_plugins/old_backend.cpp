// The cpu backend without its optional functions: it cannot convert bytes to floats. It has the
// name of the real one and is found first.
#include <dlfcn.h>

#include "plugins/abi.h"
#include "plugins/sdk.h"

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_backend backend{};
  static tandem_streams streams{};
  static tandem_arithmetic arithmetic{};
  static const tandem_backend* all[] = {&backend};
  static const tandem_backends backends{sizeof backends, TANDEM_BACKENDS_MAJOR,
                                        TANDEM_BACKENDS_MINOR, 1, all};
  static tandem_plugin plugin{};
  void* library = dlopen(TANDEM_CPU_BACKEND, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    host->explain(dlerror());
    return nullptr;
  }
  const auto entry =
      reinterpret_cast<tandem_plugin_entry_function>(dlsym(library, TANDEM_ENTRY_SYMBOL));
  backend = *entry(host)->backends->backends[0];
  streams = *backend.streams;
  arithmetic = *backend.arithmetic;
  arithmetic.convert_pixels = nullptr;
  streams.copy_rows = nullptr;
  backend.streams = &streams;
  backend.arithmetic = &arithmetic;
  backend.links = nullptr;
  plugin.abi_major = TANDEM_ABI_MAJOR;
  plugin.abi_minor = TANDEM_ABI_MINOR;
  plugin.struct_size = sizeof plugin;
  plugin.name = "old-backend";
  plugin.version = "0";
  plugin.backends = &backends;
  return &plugin;
}
