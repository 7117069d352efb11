#include <fmt/format.h>

#include <algorithm>

#include "core/base/png.h"
#include "core/base/strings.h"
#include "core/cli/data_report.h"

namespace tandem::cli {
namespace {

constexpr const char* style =
    R"(body{font:15px/1.45 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}
table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:right;vertical-align:middle}
td:first-child,th:first-child{text-align:left}.bar{background:#3b76b5;height:.9em;display:inline-block}
img{margin:1px;image-rendering:pixelated}.bad{color:#a11}code{background:#f2f2f2;padding:0 .2em}
@media(prefers-color-scheme:dark){body{background:#191919;color:#ddd}code{background:#333}})";

std::string pictures(const Audit& audit, int64_t label) {
  std::string html;
  for (const Thumbnail& one : audit.thumbnails) {
    if (one.label != label) continue;
    html += fmt::format(
        "<img width=64 height=64 title=\"{}\" alt=\"\" src=\"data:image/png;base64,{}\">",
        escape_xml(one.name), to_base64(to_png(thumbnail_side, thumbnail_side, one.pixels)));
  }
  return html;
}

std::string classes(const Audit& audit) {
  constexpr int widest = 160;
  std::string html = "<table><tr><th>class</th>";
  for (const SplitAudit& split : audit.splits) {
    html += fmt::format("<th>{}</th>", escape_xml(split.name));
  }
  html += "<th></th><th></th></tr>\n";
  const auto& train = audit.splits[0].class_counts;
  const int64_t most = std::max<int64_t>(1, *std::max_element(train.begin(), train.end()));
  for (size_t c = 0; c < audit.class_names.size(); ++c) {
    html += fmt::format("<tr><td>{}</td>", escape_xml(audit.class_names[c]));
    for (const SplitAudit& split : audit.splits) {
      html += fmt::format("<td>{}</td>", split.class_counts[c]);
    }
    html += fmt::format(
        "<td style=\"text-align:left\"><span class=bar style=\"width:{}px\"></span></td><td "
        "style=\"text-align:left\">{}</td></tr>\n",
        train[c] * widest / most, pictures(audit, static_cast<int64_t>(c)));
  }
  return html + "</table>\n";
}

std::string damaged(const Audit& audit) {
  std::string html;
  for (const SplitAudit& split : audit.splits) {
    for (const ReasonCount& one : by_reason(split.bad)) {
      html += fmt::format("<li class=bad>{}: {} &times; {} (as <code>{}</code>)</li>\n",
                          escape_xml(split.name), one.count, escape_xml(one.reason),
                          escape_xml(one.example));
    }
  }
  return html.empty() ? "<p>No image is damaged.</p>\n" : "<ul>\n" + html + "</ul>\n";
}

std::string duplicates(const std::vector<Duplicate>& all, const char* title) {
  constexpr size_t most = 200;
  if (all.empty()) return "";
  std::string html = fmt::format("<h2>{} {}</h2>\n<ul>\n", all.size(), title);
  for (size_t i = 0; i < std::min(all.size(), most); ++i) {
    html += fmt::format("<li><code>{}</code> ({}, {}) = <code>{}</code> ({}, {})</li>\n",
                        escape_xml(all[i].name), all[i].split, escape_xml(all[i].class_name),
                        escape_xml(all[i].other_name), all[i].other_split,
                        escape_xml(all[i].other_class));
  }
  return html + "</ul>\n";
}

std::string splits(const Audit& audit) {
  std::string html =
      "<table><tr><th>split</th><th>images</th><th>damaged</th><th>size</th><th>shorter "
      "side</th><th>formats</th></tr>\n";
  for (const SplitAudit& split : audit.splits) {
    std::string formats;
    for (const auto& [format, count] : split.formats) {
      formats += fmt::format("{}{} {}", formats.empty() ? "" : ", ", count, escape_xml(format));
    }
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} to {}, median "
        "{}</td><td>{}</td></tr>\n",
        escape_xml(split.name), split.samples, split.bad.size(), human_bytes(split.bytes),
        split.least_side, split.most_side, split.median_side, formats);
  }
  return html + "</table>\n";
}

}  // namespace

std::string to_html(const Audit& audit, const std::string& source) {
  const std::string title = escape_xml(source);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width\"><title>{}</title>\n<style>{}</style>\n<h1>{}</h1>\n<p>{} "
      "classes, read by {}.</p>\n",
      title, style, title, audit.class_names.size(), escape_xml(audit.type));
  if (!audit.suggestions.empty()) {
    html += "<h2>Suggestions</h2>\n<ul>\n";
    for (const std::string& line : audit.suggestions) html += "<li>" + escape_xml(line) + "</li>\n";
    html += "</ul>\n";
  }
  html += "<h2>Splits</h2>\n" + splits(audit) + "<h2>Damaged images</h2>\n" + damaged(audit);
  html += duplicates(audit.leaks, "images lie in two splits") +
          duplicates(audit.conflicts, "images are there as two classes");
  return html + "<h2>Classes</h2>\n" + classes(audit) + "</html>\n";
}

}  // namespace tandem::cli
