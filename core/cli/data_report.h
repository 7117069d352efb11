// An audit for people: as text, as JSON and as a page that needs nothing beside itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/data/audit.h"

namespace tandem::cli {

[[nodiscard]] std::string to_text(const Audit& audit, const std::string& source, int width);
[[nodiscard]] nlohmann::json to_json(const Audit& audit, const std::string& source);
[[nodiscard]] std::string to_html(const Audit& audit, const std::string& source);

// "12 of them: truncated or damaged JPEG: ..." for each reason, most frequent first.
struct ReasonCount {
  std::string reason;
  int64_t count = 0;
  std::string example;
};
[[nodiscard]] std::vector<ReasonCount> by_reason(const std::vector<BadSample>& bad);

}  // namespace tandem::cli
