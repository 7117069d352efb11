// Parts of HTML pages about a data set: `tandem data --html` and the report of a run have them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/data/audit/audit.h"

namespace tandem {

// Of each split its images, sizes and formats, and its damaged images by reason.
[[nodiscard]] nlohmann::json splits_json(const Audit& audit);

}  // namespace tandem
