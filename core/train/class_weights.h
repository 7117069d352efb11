// What a sample of each class counts in the loss.
#pragma once

#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace tandem {

// `text`: "balanced" (every class counts as much as the others in all, and a sample 1 in the mean),
// numbers in the order of the classes ("1,2,0.5"), or a file with a class's name and its weight on
// each line. One value a class of `training`; Error for what does not name each class once, or is
// no weight.
[[nodiscard]] std::vector<float> read_class_weights(const std::string& text,
                                                    const Dataset& training);

}  // namespace tandem
