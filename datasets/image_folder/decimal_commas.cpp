#include "datasets/image_folder/decimal_commas.h"

#include <algorithm>

#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

bool are_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A number of such a column: what is before the decimal comma, and its points.
struct Written {
  bool is_number = false;
  bool has_comma = false;
  bool has_groups = false;  // 1.200: by its points it may be twelve hundred
  bool has_point = false;   // 1.25: by its point it is no more than two
  std::string plain;        // with a decimal point, without marks of thousands
};

Written read_written(std::string_view text) {
  Written result;
  double ignored = 0;
  const std::string sign(text.starts_with('-') ? "-" : "");
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const size_t comma = text.find(',');
  result.has_comma = comma != std::string_view::npos;
  const std::string_view before = text.substr(0, comma);
  const std::string_view behind = result.has_comma ? text.substr(comma + 1) : "";
  std::string whole(before.substr(0, before.find('.')));
  result.has_groups = whole.size() < before.size() && whole.size() <= 3 && are_digits(whole) &&
                      !whole.starts_with('0');
  for (size_t at = whole.size(); result.has_groups && at < before.size(); at += 4) {
    const std::string_view group = before.substr(at + 1, 3);
    const bool ends = at + 4 >= before.size() || before[at + 4] == '.';
    result.has_groups = group.size() == 3 && are_digits(group) && ends;
    whole += group;
  }
  result.has_point = !result.has_groups && before.find('.') != std::string_view::npos;
  if (result.has_comma) {
    const bool is_whole = result.has_groups || are_digits(before);
    result.is_number = is_whole && are_digits(behind);
    result.plain =
        sign + (result.has_groups ? whole : std::string(before)) + "." + std::string(behind);
  } else {
    result.is_number = result.has_groups || read_number(text, &ignored);
    result.plain = sign + (result.has_groups ? whole : std::string(text));
  }
  return result;
}

struct Column {
  bool are_numbers = true;
  bool has_digits = false;  // numbers without points or commas
  const ListEntry *comma = nullptr, *groups = nullptr, *point = nullptr;  // the first of each
};

Column survey_column(const ListFile& list, size_t column) {
  Column result;
  for (const ListEntry& entry : list.entries) {
    const std::string& text = entry.labels[column];
    if (text.empty()) continue;
    const Written one = read_written(text);
    result.are_numbers = result.are_numbers && one.is_number;
    if (one.has_comma && result.comma == nullptr) result.comma = &entry;
    if (one.has_groups && result.groups == nullptr) result.groups = &entry;
    if (one.has_point && result.point == nullptr) result.point = &entry;
    const bool is_plain = !one.has_comma && !one.has_groups && !one.has_point;
    result.has_digits = result.has_digits || is_plain;
  }
  return result;
}

}  // namespace

void read_decimal_commas(ListFile& list) {
  for (size_t column = 0; column < list.columns.size(); ++column) {
    const Column found = survey_column(list, column);
    if (!found.are_numbers) continue;
    const bool has_comma = found.comma != nullptr, has_groups = found.groups != nullptr;
    const bool is_mixed = has_comma && has_groups && found.point != nullptr;
    const bool may_be_either = !has_comma && has_groups && found.has_digits && !found.point;
    if (is_mixed || may_be_either) {
      const std::string& text = found.groups->labels[column];
      throw sdk::invalid(list.file, ":", found.groups->line, ": '", text, "' may be ",
                         read_written(text).plain, " or a number with a decimal point (",
                         is_mixed ? sdk::text("line ", found.point->line, " has '",
                                              found.point->labels[column], "'")
                                  : "others have no fraction",
                         "): write all without marks between thousands, and fractions alike");
    }
    if (!has_comma) continue;
    for (ListEntry& entry : list.entries) {
      if (!entry.labels[column].empty()) {
        entry.labels[column] = read_written(entry.labels[column]).plain;
      }
    }
    const std::string of =
        list.columns[column].empty() ? "" : sdk::text("of '", list.columns[column], "' ");
    list.notes.push_back(sdk::text("'", list.file, "': the decimal commas ", of,
                                   "are read as points (3,5 is 3.5",
                                   has_groups ? " and 1.200,25 is 1200.25)" : ")"));
  }
}

}  // namespace tandem::image_folder
