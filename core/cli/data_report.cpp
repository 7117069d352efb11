#include "core/cli/data_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/strings.h"
#include "core/data/dataset_statistics.h"
#include "core/report/audit_page.h"
#include "core/report/display.h"
#include "core/report/page/page.h"

namespace tandem::cli {
namespace {

constexpr size_t max_classes = 60, max_listed = 10;

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
          : number == 3 ? "color"
          : number == 4 ? "of four channels"
                        : "of unknown channels"] += count;
  }
  return named.size() == 1 && named.count("of unknown channels") > 0 ? "" : counts(named);
}

std::string split_text(const SplitAudit& split) {
  std::string text = fmt::format("{}: {} images", split.name, split.samples);
  if (!split.bad.empty()) text += fmt::format(", {} of them left out", split.bad.size());
  if (split.without_label > 0) text += fmt::format(", {} without a label", split.without_label);
  if (split.bytes > 0) text += ", " + human_bytes(split.bytes);
  text += "\n";
  if (split.max_side > 0) {
    text += split.min_side == split.max_side
                ? fmt::format("  shorter side {} pixels\n", split.max_side)
                : fmt::format("  shorter side {} to {} pixels, half of them up to {}\n",
                              split.min_side, split.max_side, split.median_side);
  }
  if (!split.formats.empty()) text += "  " + counts(split.formats);
  const std::string channels = channels_text(split.channels);
  if (!channels.empty()) text += "; " + channels;
  if (!split.formats.empty()) text += "\n";
  for (const std::string& note : tandem::split(split.notes, '\n')) {
    if (!note.empty()) text += "  " + note + "\n";
  }
  for (const ReasonCount& one : by_reason(split.bad)) {
    text += fmt::format("  left out: {} x {} (as {})\n", one.count, one.reason, one.example);
  }
  for (const Remark& one : split.remarks) {
    text += fmt::format("  used: {} x {} (as {})\n", one.count, one.text, one.example);
  }
  return text;
}

// Number of characters that the terminal shows of UTF-8 text.
size_t shown_length(const std::string& text) {
  const auto begins = [](char c) { return (uint8_t(c) & 0xc0U) != 0x80U; };
  return size_t(std::count_if(text.begin(), text.end(), begins));
}

// Least, mean and largest value of each number, in each split.
std::string range_table(const Audit& audit) {
  std::string text;
  for (size_t k = 0; k < std::min(audit.class_names.size(), max_classes); ++k) {
    for (const SplitAudit& split : audit.splits) {
      const ValueRange& range = split.ranges.at(k);
      text += fmt::format("  {} ({}): {:.6g} to {:.6g}, mean {:.6g}\n", audit.class_names[k],
                          split.name, range.least, range.most, range.mean);
    }
  }
  if (audit.class_names.size() > max_classes) {
    text += fmt::format("  and {} more values\n", audit.class_names.size() - max_classes);
  }
  return text;
}

std::string chart(const Audit& audit, int width) {
  if (audit.task == TANDEM_TASK_VALUES) return range_table(audit);
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
    text += fmt::format("  and {} more {}\n", audit.class_names.size() - classes,
                        task_text(audit.task));
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

nlohmann::json duplicate_json(const Duplicate& d) {
  return {{"split", d.split},
          {"image", d.name},
          {"class", d.class_name},
          {"other_split", d.other_split},
          {"other_image", d.other_name},
          {"other_class", d.other_class}};
}

nlohmann::json ranges_json(const SplitAudit& split) {
  nlohmann::json array = nlohmann::json::array();
  for (const ValueRange& range : split.ranges) {
    array.push_back({{"least", range.least}, {"mean", range.mean}, {"most", range.most}});
  }
  return array;
}

nlohmann::json duplicates_json(const std::vector<Duplicate>& all) {
  nlohmann::json array = nlohmann::json::array();
  for (const Duplicate& d : all) array.push_back(duplicate_json(d));
  return array;
}

}  // namespace

std::string to_text(const Audit& audit, const std::string& source, int width) {
  std::string text = fmt::format("{} ({}): {} {}\n\n", source, audit.type, audit.class_names.size(),
                                 task_text(audit.task));
  text += chart(audit, width) + "\n";
  for (const SplitAudit& split : audit.splits) text += split_text(split);
  if (!audit.mean.empty()) {
    text += fmt::format("\nmean {:.1f} and deviation {:.1f} of {} (training, 0 to 255)\n",
                        fmt::join(audit.mean, ","), fmt::join(audit.deviation, ","),
                        audit.mean.size() == 3 ? "B,G,R" : "gray");
  }
  list(audit.leaks, "in two splits:", text);
  list(audit.conflicts,
       audit.task == TANDEM_TASK_CLASSES ? "in two classes:" : "twice, with different labels:",
       text);
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
                         {"task", task_text(audit.task)},
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
    nlohmann::json remarks = nlohmann::json::object();
    for (const Remark& one : split.remarks) remarks[one.text] = one.count;
    tree["splits"].push_back(
        {{"name", split.name},
         {"images", split.samples},
         {"class_counts", split.class_counts},
         {"ranges", ranges_json(split)},
         {"damaged", bad},
         {"remarks", remarks},
         {"formats", split.formats},
         {"bytes", split.bytes},
         {"shorter_side",
          {{"least", split.min_side}, {"median", split.median_side}, {"most", split.max_side}}}});
  }
  return tree;
}

// ---- the page

namespace {

// A picture of the audit, as large as `side`.
std::string thumbnail(const std::vector<unsigned char>& pixels, int64_t side) {
  return base64_png(shrunk({thumbnail_side, thumbnail_side, pixels}, side));
}

// The side at which all pictures of the classes take at most some 2 MB: a pixel has three bytes,
// which are four in base64.
int64_t side_of_thumbnails(size_t count) {
  constexpr double room = 2e6, bytes_of_pixel = 4;
  const double side = std::sqrt(room / bytes_of_pixel / double(std::max<size_t>(1, count)));
  return std::min(thumbnail_side, int64_t(side));
}

// How many there are, and the first of them with their pictures.
nlohmann::json shown_duplicates(const std::vector<Duplicate>& all) {
  constexpr size_t max_shown = 200;
  constexpr int64_t side = 64;
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < std::min(all.size(), max_shown); ++i) {
    list.push_back(duplicate_json(all[i]));
    if (!all[i].pixels.empty()) list.back()["png"] = thumbnail(all[i].pixels, side);
  }
  return {{"count", all.size()}, {"list", list}};
}

}  // namespace

std::string to_html(const Audit& audit, const std::string& source) {
  nlohmann::json data = {{"page", "data"},
                         {"type", audit.type},
                         {"task", task_text(audit.task)},
                         {"classes", audit.class_names},
                         {"suggestions", audit.suggestions},
                         {"splits", splits_json(audit)},
                         {"leaks", shown_duplicates(audit.leaks)},
                         {"conflicts", shown_duplicates(audit.conflicts)},
                         {"thumbnails", nlohmann::json::array()}};
  for (size_t i = 0; i < audit.splits.size(); ++i) {
    data["splits"][i]["class_counts"] = audit.splits[i].class_counts;
    data["splits"][i]["ranges"] = ranges_json(audit.splits[i]);
  }
  const int64_t side = side_of_thumbnails(audit.thumbnails.size());
  for (const Thumbnail& one : audit.thumbnails) {
    data["thumbnails"].push_back(
        {{"label", one.label}, {"name", one.name}, {"png", thumbnail(one.pixels, side)}});
  }
  return html_page(source, data);
}

}  // namespace tandem::cli
