// Training AlexNet on a folder of images, with a line for every few steps.
#pragma once

#include "core/plugin/registry.h"
#include "examples/alexnet/options.h"

namespace alexnet {

// How many classes the folder has, without training on it. Throws tandem::Error if it cannot be
// trained on.
[[nodiscard]] int64_t count_classes(tandem::Registry& registry, const Options& options,
                                    const tandem::Shape& data);

// Returns the exit code: 0, or 130 after Ctrl-C (the run is saved). Throws tandem::Error.
[[nodiscard]] int train_on_images(const Options& options);

}  // namespace alexnet
