#include "core/cli/data_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/strings.h"
#include "core/report/audit_page.h"
#include "core/report/display.h"
#include "core/report/page/page.h"
#include "core/report/page/png.h"

namespace tandem::cli {
namespace {

constexpr size_t max_classes = 60, max_listed = 10;

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.1f}", text.empty() ? "" : ",", value);
  return text;
}

template <class Map>
std::string counts(const Map& map) {
  std::string text;
  for (const auto& [key, count] : map) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, key);
  }
  return text;
}

std::string channels_text(const std::map<int, int64_t>& channels) {
  std::map<std::string, int64_t> named;
  for (const auto& [number, count] : channels) {
    named[number == 1   ? "gray"
          : number == 3 ? "colour"
          : number == 4 ? "of four channels"
                        : "of unknown channels"] += count;
  }
  return named.size() == 1 && named.count("of unknown channels") > 0 ? "" : counts(named);
}

std::string split_text(const SplitAudit& split) {
  std::string text = fmt::format("{}: {} images", split.name, split.samples);
  if (!split.bad.empty()) text += fmt::format(", {} of them damaged", split.bad.size());
  if (split.bytes > 0) text += ", " + human_bytes(split.bytes);
  text += "\n";
  if (split.most_side > 0) {
    text += split.least_side == split.most_side
                ? fmt::format("  shorter side {} pixels\n", split.most_side)
                : fmt::format("  shorter side {} to {} pixels, half of them up to {}\n",
                              split.least_side, split.most_side, split.median_side);
  }
  if (!split.formats.empty()) text += "  " + counts(split.formats);
  const std::string channels = channels_text(split.channels);
  if (!channels.empty()) text += "; " + channels;
  if (!split.formats.empty()) text += "\n";
  for (const std::string& note : tandem::split(split.notes, '\n')) {
    if (!note.empty()) text += "  " + note + "\n";
  }
  for (const ReasonCount& one : by_reason(split.bad)) {
    text += fmt::format("  damaged: {} x {} (as {})\n", one.count, one.reason, one.example);
  }
  return text;
}

// Number of characters that the terminal shows of UTF-8 text.
size_t shown_length(const std::string& text) {
  const auto begins = [](char c) { return (uint8_t(c) & 0xc0U) != 0x80U; };
  return size_t(std::count_if(text.begin(), text.end(), begins));
}

std::string chart(const Audit& audit, int width) {
  size_t longest = 0;
  const size_t classes = std::min(audit.class_names.size(), max_classes);
  for (size_t c = 0; c < classes; ++c) {
    longest = std::max(longest, shown_length(audit.class_names[c]));
  }
  longest = std::min<size_t>(longest, 30);
  const auto& train = audit.splits[0].class_counts;
  const int64_t most = std::max<int64_t>(1, *std::max_element(train.begin(), train.end()));
  std::string text = std::string(longest + 2, ' ');
  for (const SplitAudit& split : audit.splits) text += fmt::format("{:>8}", split.name);
  text += "\n";
  const int room = std::max(10, width - int(longest + 4 + 8 * audit.splits.size()));
  for (size_t c = 0; c < classes; ++c) {
    const std::string& name = audit.class_names[c];
    const size_t length = shown_length(name);
    const std::string shown =
        length > longest && length == name.size() ? name.substr(0, longest - 3) + "..." : name;
    text += "  " + shown + std::string(longest - std::min(longest, shown_length(shown)), ' ');
    for (const SplitAudit& split : audit.splits)
      text += fmt::format("{:>8}", split.class_counts[c]);
    const auto bar = size_t((train[c] * room + most - 1) / most);
    text += "  " + std::string(bar, '#') + "\n";
  }
  if (audit.class_names.size() > classes) {
    text += fmt::format("  and {} more classes\n", audit.class_names.size() - classes);
  }
  return text;
}

void list(const std::vector<Duplicate>& all, const char* title, std::string& text) {
  if (all.empty()) return;
  text += fmt::format("\n{} {}\n", image_count(all.size()), title);
  for (size_t i = 0; i < std::min(all.size(), max_listed); ++i) {
    const Duplicate& d = all[i];
    text += fmt::format("  {} ({}, {}) = {} ({}, {})\n", d.name, d.split, d.class_name,
                        d.other_name, d.other_split, d.other_class);
  }
  if (all.size() > max_listed) text += fmt::format("  and {} more\n", all.size() - max_listed);
}

nlohmann::json duplicates_json(const std::vector<Duplicate>& all) {
  nlohmann::json array = nlohmann::json::array();
  for (const Duplicate& d : all) {
    array.push_back({{"split", d.split},
                     {"image", d.name},
                     {"class", d.class_name},
                     {"other_split", d.other_split},
                     {"other_image", d.other_name},
                     {"other_class", d.other_class}});
  }
  return array;
}

}  // namespace

std::string to_text(const Audit& audit, const std::string& source, int width) {
  std::string text =
      fmt::format("{} ({}): {} classes\n\n", source, audit.type, audit.class_names.size());
  text += chart(audit, width) + "\n";
  for (const SplitAudit& split : audit.splits) text += split_text(split);
  if (!audit.mean.empty()) {
    text +=
        fmt::format("\nmean {} and deviation {} of {} (training, 0 to 255)\n", numbers(audit.mean),
                    numbers(audit.deviation), audit.mean.size() == 3 ? "B,G,R" : "gray");
  }
  list(audit.leaks, "in two splits:", text);
  list(audit.conflicts, "in two classes:", text);
  if (audit.repeated > 0) {
    text +=
        fmt::format("\n{} further copies of images of the same class and split\n", audit.repeated);
  }
  if (!audit.suggestions.empty()) text += "\n";
  for (const std::string& line : audit.suggestions) text += "suggestion: " + line + "\n";
  return text;
}

nlohmann::json to_json(const Audit& audit, const std::string& source) {
  nlohmann::json tree = {{"source", source},
                         {"type", audit.type},
                         {"classes", audit.class_names},
                         {"mean", audit.mean},
                         {"deviation", audit.deviation},
                         {"leaks", duplicates_json(audit.leaks)},
                         {"conflicts", duplicates_json(audit.conflicts)},
                         {"repeated", audit.repeated},
                         {"suggestions", audit.suggestions},
                         {"splits", nlohmann::json::array()}};
  for (const SplitAudit& split : audit.splits) {
    nlohmann::json bad = nlohmann::json::array();
    for (const BadSample& one : split.bad) {
      bad.push_back({{"image", one.name}, {"reason", one.reason}});
    }
    tree["splits"].push_back({{"name", split.name},
                              {"images", split.samples},
                              {"class_counts", split.class_counts},
                              {"damaged", bad},
                              {"formats", split.formats},
                              {"bytes", split.bytes},
                              {"shorter_side",
                               {{"least", split.least_side},
                                {"median", split.median_side},
                                {"most", split.most_side}}}});
  }
  return tree;
}

// ---- the page

namespace {

// A picture that a click shows large; as large as `side` in the file.
std::string thumbnail(const std::vector<unsigned char>& pixels, const std::string& name,
                      int64_t side) {
  const DrawnPicture small = shrunk({thumbnail_side, thumbnail_side, pixels}, side);
  return fmt::format(
      "<button class=open title=\"{0}\"><img class=thumb alt=\"\" "
      "src=\"data:image/png;base64,{1}\"></button>",
      escape_xml(name), to_base64(to_png(small.width, small.height, small.pixels)));
}

// The side at which all pictures of the classes take at most some 2 MB: a pixel has three bytes,
// which are four in base64.
int64_t side_of_thumbnails(size_t count) {
  constexpr double room = 2e6, bytes_of_pixel = 4;
  const double side =
      std::sqrt(room / bytes_of_pixel / static_cast<double>(std::max<size_t>(1, count)));
  return std::min(thumbnail_side, static_cast<int64_t>(side));
}

std::string pictures(const Audit& audit, int64_t label) {
  const int64_t side = side_of_thumbnails(audit.thumbnails.size());
  std::string html;
  for (const Thumbnail& one : audit.thumbnails) {
    if (one.label == label) html += thumbnail(one.pixels, one.name, side);
  }
  return html;
}

std::string classes(const Audit& audit) {
  HtmlRow heading{"class"};
  for (const SplitAudit& split : audit.splits) heading.push_back(escape_xml(split.name));
  heading.insert(heading.end(), {"", ""});
  const auto& train = audit.splits[0].class_counts;
  const int64_t most = std::max<int64_t>(1, *std::max_element(train.begin(), train.end()));
  std::vector<HtmlRow> rows;
  for (size_t c = 0; c < audit.class_names.size(); ++c) {
    HtmlRow& row = rows.emplace_back(HtmlRow{escape_xml(audit.class_names[c])});
    for (const SplitAudit& split : audit.splits) {
      row.push_back(fmt::format("{}", split.class_counts[c]));
    }
    row.push_back(html_bar(static_cast<double>(train[c]) / static_cast<double>(most), ""));
    row.push_back("<div class=left>" + pictures(audit, static_cast<int64_t>(c)) + "</div>");
  }
  return html_table(heading, rows);
}

std::string duplicates(const std::vector<Duplicate>& all, const char* title) {
  constexpr size_t most = 200;
  constexpr int64_t side = 64;
  if (all.empty()) return "";
  std::string html =
      fmt::format("<h2>{} {}</h2>\n<ul class=doubled>\n", image_count(all.size()), title);
  for (size_t i = 0; i < std::min(all.size(), most); ++i) {
    const std::string picture =
        all[i].pixels.empty() ? "" : thumbnail(all[i].pixels, all[i].name, side);
    html += fmt::format(
        "<li>{}<span><code>{}</code> ({}, {}) = <code>{}</code> ({}, {})</span></li>\n", picture,
        escape_xml(all[i].name), all[i].split, escape_xml(all[i].class_name),
        escape_xml(all[i].other_name), all[i].other_split, escape_xml(all[i].other_class));
  }
  return html + "</ul>\n";
}

}  // namespace

std::string to_html(const Audit& audit, const std::string& source) {
  std::string html = fmt::format("<p>{} classes, read by {}.</p>\n", audit.class_names.size(),
                                 escape_xml(audit.type));
  if (!audit.suggestions.empty()) {
    html += "<h2>Suggestions</h2>\n<ul>\n";
    for (const std::string& line : audit.suggestions) html += "<li>" + escape_xml(line) + "</li>\n";
    html += "</ul>\n";
  }
  html += "<h2>Splits</h2>\n" + split_table(audit) + "<h2>Damaged images</h2>\n";
  for (const SplitAudit& split : audit.splits) html += damage_list(split.bad, split.name);
  html += duplicates(audit.leaks, "in two splits") + duplicates(audit.conflicts, "in two classes");
  return html_page(source,
                   html + "<h2>Classes</h2>\n<div class=classes>" + classes(audit) + "</div>\n");
}

}  // namespace tandem::cli
