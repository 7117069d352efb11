// Breaks the first rule of the ABI.
#include <stdexcept>

#include "plugins/abi.h"

extern "C" __attribute__((visibility("default"))) const tandem_plugin* tandem_plugin_entry(
    const tandem_host*) {
  throw std::runtime_error("this message must not be shown");
}
