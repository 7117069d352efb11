#include "datasets/image_folder/csv_splits.h"

#include <algorithm>
#include <set>

#include "datasets/picture/names.h"
#include "datasets/picture/split_names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::beginning_of;
using picture::lower_case;

// As Google's tables name the split of images that have no_column.
bool is_unassigned(const std::string& text) {
  return lower_case(text) == "unassigned";
}

bool lacks_split(const std::string& text) {
  return text.empty() || is_unassigned(text);
}

bool are_unassigned(const Rows& rows, const CsvColumns& columns) {
  return std::all_of(rows.begin() + (columns.heading ? 1 : 0), rows.end(), [&](const auto& row) {
    return columns.split < row.second.size() && lacks_split(row.second[columns.split]);
  });
}

}  // namespace

bool are_splits(const Rows& rows, size_t first, size_t column) {
  return rows.size() > first &&
         std::all_of(rows.begin() + static_cast<ptrdiff_t>(first), rows.end(),
                     [&](const auto& row) {
                       return column >= row.second.size() ||
                              !picture::split_of_name(row.second[column]).empty() ||
                              is_unassigned(row.second[column]);
                     });
}

void find_splits(const Rows& rows, CsvColumns& columns) {
  const std::vector<std::string>& headings = rows[0].second;
  columns.split = find_heading(headings, {"split", "set", "subset", "usage", "partition", "phase"});
  struct Flag {
    const char *name, *one, *zero;
  };
  for (const Flag& flag : {Flag{"isval", "val", "train"}, Flag{"istrain", "train", "val"},
                           Flag{"istest", "test", "train"}}) {
    if (columns.split != no_column) return;
    for (size_t i = 0; i < headings.size() && columns.split == no_column; ++i) {
      if (plain_heading(headings[i]).starts_with(flag.name)) columns.split = i;
    }
    if (columns.split == no_column) continue;
    columns.split_of_one = flag.one;
    columns.split_of_zero = flag.zero;
  }
  for (size_t i = 0; i < columns.count && columns.split == no_column; ++i) {
    if (i == columns.path || i == label_heading(headings) || !are_splits(rows, 1, i)) continue;
    columns.split = i;
  }
}

// What stands in a column of splits that names no_column.
void read_odd_splits(const Rows& rows, CsvColumns& columns, ListFile& list) {
  list.has_splits = columns.split != no_column;
  if (!list.has_splits) return;
  if (are_unassigned(rows, columns)) {
    list.has_splits = false;
    const bool any_word = !rows.back().second[columns.split].empty();
    list.notes.push_back(sdk::text("'", list.file, "': no line has a split",
                                   any_word ? " (UNASSIGNED)" : "", ": validation is drawn"));
    return;
  }
  if (!columns.split_of_one.empty()) return;
  std::set<std::string> texts;
  size_t without = 0;
  for (size_t i = columns.heading ? 1 : 0; i < rows.size(); ++i) {
    if (columns.split >= rows[i].second.size()) continue;
    texts.insert(rows[i].second[columns.split]);
    without += lacks_split(rows[i].second[columns.split]) ? 1 : 0;
  }
  columns.has_numbered_splits = texts == std::set<std::string>{"0", "1", "2"};
  if (columns.has_numbered_splits) {
    list.notes.push_back(
        sdk::text("'", list.file, "': the splits 0, 1 and 2 are train, val and test"));
  }
  if (without > 0) {
    list.notes.push_back(sdk::text("'", list.file, "': ", without,
                                   without == 1 ? " line has no split and is trained on"
                                                : " lines have no split and are trained on"));
  }
}

std::string split_of(const std::string& text, const CsvColumns& columns, const Line& place) {
  if (columns.has_numbered_splits) return text == "0" ? "train" : text == "1" ? "val" : "test";
  if (lacks_split(text)) return "train";
  std::string split = picture::split_of_name(text);
  if (!columns.split_of_one.empty()) {
    const std::string small = lower_case(text);
    const bool one = small == "true" || small == "1" || small == "yes";
    const bool zero = small == "false" || small == "0" || small == "no";
    split = one ? columns.split_of_one : zero ? columns.split_of_zero : "";
    if (split.empty()) throw wrong(place, "'", beginning_of(text), "' is not True or False");
  }
  if (!split.empty()) return split;
  throw wrong(
      place, "the split '", beginning_of(text),
      "' is not one of train, val, test (or of 0, 1, 2, where all three are there); if the column "
      "holds no splits, give it another heading");
}

}  // namespace tandem::image_folder
