// Converts images of bytes to floats in device memory. It only issues a kernel. Throws Refusal for
// more channels than there are means.
#pragma once

#include "plugins/abi.h"

namespace tandem::cuda {

void convert_pixels(const tandem_call& call, const tandem_pixels& pixels);

}  // namespace tandem::cuda
