#include "core/report/audit_page.h"

#include <nlohmann/json.hpp>

#include "core/base/text/strings.h"

namespace tandem {

nlohmann::json splits_json(const Audit& audit) {
  nlohmann::json splits = nlohmann::json::array();
  for (const SplitAudit& split : audit.splits) {
    nlohmann::json damage = nlohmann::json::array();
    for (const ReasonCount& one : by_reason(split.bad)) {
      damage.push_back({{"count", one.count}, {"reason", one.reason}, {"example", one.example}});
    }
    splits.push_back({{"name", split.name},
                      {"images", split.samples},
                      {"damaged", split.bad.size()},
                      {"damage", damage},
                      {"bytes", split.bytes > 0 ? human_bytes(split.bytes) : ""},
                      {"shorter_side", {split.min_side, split.median_side, split.max_side}},
                      {"formats", split.formats}});
  }
  return splits;
}

}  // namespace tandem
