// Passes of a layer in graphs that a stream captures (tandem_capture), on each kind of device for
// which the layer has a kernel and whose streams can be captured.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

// A note where the kernel refuses, which it may, or where there is no such device.
Outcome equal_in_a_capture(const Subject& subject, const Case& one);

}  // namespace tandem::checker
