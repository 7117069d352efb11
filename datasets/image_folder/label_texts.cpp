#include "datasets/image_folder/label_texts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include "datasets/image_folder/list_file.h"
#include "datasets/picture/names.h"

namespace tandem::image_folder {

using picture::lower_case;

bool is_missing(const std::string& text) {
  static constexpr std::string_view words[] = {"", "nan", "na", "n/a", "null", "none", "?"};
  return std::find(std::begin(words), std::end(words), lower_case(text)) != std::end(words);
}

double binary_of(const std::string& text) {
  static const std::map<std::string, double> words{
      {"0", 0},   {"1", 1},   {"0.0", 0},   {"0.", 0},    {"1.", 1},   {"-1.", -1},
      {"1.0", 1}, {"-1", -1}, {"-1.0", -1}, {"false", 0}, {"true", 1}, {"no", 0},
      {"yes", 1}, {"n", 0},   {"y", 1},     {"f", 0},     {"t", 1},    {"+1", 1}};
  const auto found = words.find(lower_case(text));
  return found == words.end() ? not_binary : found->second;
}

void Survey::add(const std::string& text) {
  if (is_missing(text)) {
    ++missing;
    return;
  }
  if (distinct.size() < most_distinct) distinct.insert(text);
  const double binary = binary_of(text);
  is_binary = is_binary && binary != not_binary;
  has_zero = has_zero || binary == 0;
  has_minus_one = has_minus_one || binary == -1;
  double value = 0;
  const bool is_one = read_number(text, &value);
  const bool is_fraction = text.find_first_of(".eE") != std::string::npos;
  numbers += is_one ? 1 : 0;
  fractions += is_one && is_fraction ? 1 : 0;
  is_number = is_number && is_one;
  is_whole = is_whole && is_one && value == std::floor(value) && !is_fraction;
  is_count = is_count && is_one && value == std::floor(value) && value >= 0;
  has_negative = has_negative || value < 0;
}

bool is_written_number(std::string text) {
  for (const char* sign : {"$", "€", "£", "%", ",", " ", "'", "’"}) {
    for (size_t at; (at = text.find(sign)) != std::string::npos;) {
      text.erase(at, std::string_view(sign).size());
    }
  }
  double ignored = 0;
  return read_number(text, &ignored);
}

bool is_quantity(const std::string& text) {
  constexpr std::string_view of_number = "0123456789.,'", bounds = "<>~+-=";
  const size_t begin = text.find_first_not_of(bounds);
  if (begin == std::string::npos) return false;
  const size_t end = std::min(text.find_first_not_of(of_number, begin), text.size());
  if (!is_written_number(text.substr(begin, end - begin))) return false;
  // A word behind the number has a blank before it: "7up" is a name.
  const std::string unit = text.substr(end);
  return unit.empty() || unit == "+" ||
         (unit[0] == ' ' && unit.find_first_of("0123456789") == std::string::npos);
}

}  // namespace tandem::image_folder
