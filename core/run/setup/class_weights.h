// The weight of each class in the loss.
#pragma once

#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace tandem {

// `text`: "balanced" (all classes have the same weight in all, and samples a mean weight of 1),
// numbers in the order of the classes ("1,2,0.5"), or a file with a class's name and its weight on
// each line. Returns one value per class of `training`. Throws Error unless each class has one
// weight.
[[nodiscard]] std::vector<float> read_class_weights(const std::string& text,
                                                    const Dataset& training);

}  // namespace tandem
