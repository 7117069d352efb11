// Breaks the first rule of the border.
#include <stdexcept>

#include "minimal.h"

extern "C" TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host*) {
  throw std::runtime_error("nobody should see this");
}
