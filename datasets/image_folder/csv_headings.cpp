#include "datasets/image_folder/csv_headings.h"

#include <algorithm>

#include "datasets/picture/names.h"

namespace tandem::image_folder {
namespace {

using Fields = std::vector<std::string>;

Fields in_lower_case(const Fields& fields) {
  Fields result;
  for (const std::string& field : fields) result.push_back(picture::lower_case(field));
  return result;
}

bool repeats(const Fields& fields, const Fields& first) {
  return fields.size() == first.size() && fields[0].size() == first[0].size() &&
         in_lower_case(fields) == first;
}

constexpr size_t many_pixels = 64;

// "0 70 255 ..."
bool are_pixels(const std::string& field) {
  return field.find_first_not_of("0123456789 ") == std::string::npos &&
         static_cast<size_t>(std::count(field.begin(), field.end(), ' ')) >= many_pixels;
}

// "pixel12" and "28x28".
bool names_pixel(const std::string& heading) {
  const std::string text = picture::lower_case(heading);
  const size_t digits = text.find_first_of("0123456789");
  if (digits == std::string::npos) return false;
  if (text.starts_with("pixel") || text.starts_with("px")) return true;
  return digits == 0 && text.find_first_not_of("0123456789x") == std::string::npos &&
         std::count(text.begin(), text.end(), 'x') == 1;
}

bool is_number(const std::string& field) {
  return !field.empty() && field.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

void refuse_pixels(const Rows& rows, const std::string& file) {
  const auto& [line, fields] = rows[rows.size() > 1 ? 1 : 0];
  const Fields& first = rows[0].second;
  const auto named = std::count_if(first.begin(), first.end(), names_pixel);
  const auto all_numbers = [](const Fields& one) {
    return one.size() > many_pixels && std::all_of(one.begin(), one.end(), is_number);
  };
  const bool are_columns =
      static_cast<size_t>(named) >= many_pixels || (all_numbers(first) && all_numbers(fields));
  bool is_column = false;  // of all pixels, and not of masks or points beside the name of a file
  for (size_t i = 0; i < fields.size() && i < first.size(); ++i) {
    const bool is_named = rows.size() == 1 || picture::lower_case(first[i]).starts_with("pixel");
    is_column = is_column || (is_named && are_pixels(fields[i]));
  }
  if (!are_columns && !is_column) return;
  throw wrong({file, line},
              "pixels as numbers are not read; write each picture as a file, as PNG, in a folder "
              "for each class");
}

size_t count_repeats_of_first(const Rows& rows) {
  const Fields first = in_lower_case(rows[0].second);
  return static_cast<size_t>(std::count_if(
      rows.begin() + 1, rows.end(), [&](const auto& row) { return repeats(row.second, first); }));
}

void remove_repeats_of_first(Rows& rows) {
  const Fields first = in_lower_case(rows[0].second);
  const auto end = std::remove_if(rows.begin() + 1, rows.end(),
                                  [&](const auto& row) { return repeats(row.second, first); });
  rows.erase(end, rows.end());
}

void refuse_other_order(const Rows& rows, const std::string& file) {
  Fields first = in_lower_case(rows[0].second);
  std::sort(first.begin(), first.end());
  for (size_t i = 1; i < rows.size(); ++i) {
    const Fields& fields = rows[i].second;
    const std::string begin = picture::lower_case(fields[0]);
    if (fields.size() != first.size() || !std::binary_search(first.begin(), first.end(), begin)) {
      continue;
    }
    Fields sorted = in_lower_case(fields);
    std::sort(sorted.begin(), sorted.end());
    if (sorted != first) continue;
    throw wrong({file, rows[i].first}, "has the headings of line ", rows[0].first,
                " in another order ('", picture::beginning_of(fields[0]),
                "' first): give the columns of all files one order before they are joined");
  }
}

}  // namespace tandem::image_folder
