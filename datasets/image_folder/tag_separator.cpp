#include "datasets/image_folder/tag_separator.h"

#include <algorithm>
#include <array>

#include "datasets/image_folder/label_cells.h"
#include "datasets/image_folder/label_texts.h"
#include "datasets/picture/names.h"

namespace tandem::image_folder {
namespace {

using Values = std::set<std::string>;

// Prices as 3,50, 1,234,567 and 1 200: each is one number. In 1,2,3 the commas divide several.
bool are_written_numbers(const Values& values, char one) {
  return std::all_of(values.begin(), values.end(), [&](const std::string& value) {
    // "1, 2" is no number that anyone writes.
    if (!is_written_number(value) || value.find(", ") != std::string::npos) return false;
    const size_t first = value.find(one), last = value.rfind(one);
    for (size_t at = first; at < last; at = value.find(one, at + 1)) {
      if (value.find(one, at + 1) != at + 4) return false;
    }
    return one == ',' || last == std::string::npos || value.size() == last + 4;
  });
}

// Whether parts of the values are fewer than the values: each is in several of them. The parts of
// names such as "tench, Tinca tinca" are more.
bool recombines(const Values& values, char one) {
  Values parts;
  for (const std::string& value : values) {
    for (const std::string& part : split_at(value, one)) parts.insert(part);
  }
  return parts.size() < values.size();
}

// Plain names may stand beside a list that is no name with brackets around it.
bool are_lists(const Values& values) {
  bool any_sure = false, all = !values.empty();
  for (const std::string& value : values) {
    const Cell cell = read_cell(value);
    const bool is_list = cell.form == Cell::Form::list;
    any_sure = any_sure || (is_list && cell.is_sure);
    all = all && is_list;
  }
  return any_sure || all;
}

}  // namespace

bool is_of_labels(const std::string& heading) {
  constexpr std::array words{"labels", "tags", "classes", "categories", "targets", "ids"};
  const std::string name = picture::lower_case(heading);
  return std::any_of(words.begin(), words.end(),
                     [&](const char* end) { return name.ends_with(end); });
}

char tag_separator(const Values& values, const std::string& heading, bool is_forced) {
  const auto splits = [&](char one) {
    return std::any_of(values.begin(), values.end(),
                       [&](const std::string& value) { return split_at(value, one).size() > 1; });
  };
  if (are_lists(values)) return '[';
  for (const char one : {'|', ';'}) {
    if (splits(one)) return one;
  }
  const std::string name = picture::lower_case(heading);
  const bool is_plural = name.ends_with("s") && name != "class";
  // A column of prices may end with an s, too, as "Preis".
  const bool are_labels = is_forced || is_of_labels(heading);
  if (splits(',') && (are_labels || !are_written_numbers(values, ',')) &&
      (is_forced || is_plural || recombines(values, ','))) {
    return ',';
  }
  if (splits(' ') && (are_labels || !are_written_numbers(values, ' ')) &&
      (is_forced || is_plural)) {
    return ' ';
  }
  return '\0';
}

}  // namespace tandem::image_folder
