// Training AlexNet on a folder of images, with a line for every few steps.
#pragma once

#include "options.h"

namespace alexnet {

// Returns the exit code: 0, or 130 after Ctrl-C (the run is saved). Throws tandem::Error.
[[nodiscard]] int train_on_images(const Options& options);

}  // namespace alexnet
