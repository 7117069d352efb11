// Parts of HTML pages about a data set: `tandem data --html` and the report of a run have them.
#pragma once

#include <string>
#include <vector>

#include "core/data/audit.h"

namespace tandem {

// Images, sizes and formats of each split.
[[nodiscard]] std::string split_table(const Audit& audit);
// The damaged samples by reason. `where`: the split, or "".
[[nodiscard]] std::string damage_list(const std::vector<BadSample>& bad, const std::string& where);

}  // namespace tandem
