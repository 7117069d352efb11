// Pictures of bytes as floats in device memory. It only issues; Refusal for more channels than it
// has means for.
#pragma once

#include "plugins/abi.h"

namespace tandem::cuda {

void convert_pixels(const tandem_call& call, const tandem_pixels& pixels);

}  // namespace tandem::cuda
