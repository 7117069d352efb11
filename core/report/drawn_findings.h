// What an evaluation has found as pictures, for TensorBoard and other viewers that draw no tables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/report/run_page.h"

namespace tandem {

// "confusion matrix" (rows are true classes; classes that are confused are next to each other; of
// at most 30 classes with their names), and with samples "most confident mistakes" and "least
// certain hits"; those that there are.
[[nodiscard]] std::vector<std::pair<std::string, DrawnPicture>> drawn_findings(
    const RunFigures& run, bool with_samples);

}  // namespace tandem
