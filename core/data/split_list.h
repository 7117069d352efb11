// A split as a list: CSV of path,label,split, which the data set image_list reads again.
#pragma once

#include <string>

#include "core/data/dataset.h"

namespace tandem {

// Every sample of the two, with absolute paths; "" if their samples are not files, each its own. A
// path with a line break cannot be written and is left out.
[[nodiscard]] std::string split_list(const Dataset& training, const Dataset& validation);

}  // namespace tandem
