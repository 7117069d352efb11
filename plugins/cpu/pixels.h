// Pictures of bytes as floats, on the threads of a device.
#pragma once

#include "plugins/abi.h"

namespace tandem::cpu {

// Refusal for more channels than it has means for.
void convert_pixels(int32_t threads, const tandem_pixels& pixels);

}  // namespace tandem::cpu
