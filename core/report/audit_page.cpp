#include "core/report/audit_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text/strings.h"
#include "core/report/page/page.h"

namespace tandem {

std::string split_table(const Audit& audit) {
  std::vector<HtmlRow> rows;
  const bool has_bytes = std::any_of(audit.splits.begin(), audit.splits.end(),
                                     [](const SplitAudit& split) { return split.bytes > 0; });
  for (const SplitAudit& split : audit.splits) {
    std::string formats, sides;
    for (const auto& [format, count] : split.formats) {
      formats += fmt::format("{}{} {}", formats.empty() ? "" : ", ", count, escape_xml(format));
    }
    if (split.most_side > 0) {
      sides =
          fmt::format("{} to {}, median {}", split.least_side, split.most_side, split.median_side);
    }
    HtmlRow& row = rows.emplace_back(HtmlRow{escape_xml(split.name)});
    row.push_back(fmt::format("{}", split.samples));
    row.push_back(fmt::format("{}", split.bad.size()));
    if (has_bytes) row.push_back(human_bytes(split.bytes));
    row.insert(row.end(), {sides, formats});
  }
  HtmlRow heading{"split", "images", "damaged", "shorter side", "formats"};
  if (has_bytes) heading.insert(heading.begin() + 3, "size");
  return html_table(heading, rows);
}

std::string damage_list(const std::vector<BadSample>& bad, const std::string& where) {
  const std::string begin = where.empty() ? "" : escape_xml(where) + ": ";
  if (bad.empty()) return "<p>" + begin + "no image is damaged.</p>\n";
  std::string html;
  for (const ReasonCount& one : by_reason(bad)) {
    html += fmt::format("<li class=bad>{}{} &times; {} (as <code>{}</code>)</li>\n", begin,
                        one.count, escape_xml(one.reason), escape_xml(one.example));
  }
  return "<ul>\n" + html + "</ul>\n";
}

}  // namespace tandem
