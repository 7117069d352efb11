// Converts images of bytes to floats, on the threads of a device.
#pragma once

#include "plugins/abi.h"

namespace tandem::cpu {

// Throws Refusal for more channels than there are means.
void convert_pixels(int32_t threads, const tandem_pixels& pixels);

}  // namespace tandem::cpu
