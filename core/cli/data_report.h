// The audit of a data set as text, as JSON and as a self-contained HTML page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/data/audit.h"

namespace tandem::cli {

[[nodiscard]] std::string to_text(const Audit& audit, const std::string& source, int width);
[[nodiscard]] nlohmann::json to_json(const Audit& audit, const std::string& source);
[[nodiscard]] std::string to_html(const Audit& audit, const std::string& source);

// Damaged samples by reason, the most frequent first.
struct ReasonCount {
  std::string reason;
  int64_t count = 0;
  std::string example;
};
[[nodiscard]] std::vector<ReasonCount> by_reason(const std::vector<BadSample>& bad);

}  // namespace tandem::cli
