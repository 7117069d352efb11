// The audit of a data set as text, as JSON and as a self-contained HTML page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/data/audit/audit.h"

namespace tandem::cli {

[[nodiscard]] std::string to_text(const Audit& audit, const std::string& source, int width);
[[nodiscard]] nlohmann::json to_json(const Audit& audit, const std::string& source);
[[nodiscard]] std::string to_html(const Audit& audit, const std::string& source);

}  // namespace tandem::cli
