// What is to be said of a data set's images that were used although something is odd with them,
// each kind in one line with its count.
#pragma once

#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace tandem {

// Of the samples that were read so far.
[[nodiscard]] std::vector<std::string> remark_lines(const Dataset& dataset);

}  // namespace tandem
