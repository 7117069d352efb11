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
      {"0", 0},     {"1", 1},     {"0.0", 0},  {"1.0", 1}, {"-1", -1},
      {"-1.0", -1}, {"false", 0}, {"true", 1}, {"no", 0},  {"yes", 1},
      {"n", 0},     {"y", 1},     {"f", 0},    {"t", 1},   {"+1", 1}};
  const auto found = words.find(lower_case(text));
  return found == words.end() ? not_binary : found->second;
}

void Survey::add(const std::string& text) {
  if (is_missing(text)) {
    ++missing;
    return;
  }
  distinct.insert(text);
  const double binary = binary_of(text);
  is_binary = is_binary && binary != not_binary;
  has_zero = has_zero || binary == 0;
  has_minus_one = has_minus_one || binary == -1;
  double value = 0;
  const bool is_one = read_number(text, &value);
  const bool is_fraction = text.find_first_of(".eE") != std::string::npos;
  fractions += is_one && is_fraction ? 1 : 0;
  is_number = is_number && is_one;
  is_whole = is_whole && is_one && value == std::floor(value) && !is_fraction;
  is_count = is_count && is_one && value == std::floor(value) && value >= 0;
  has_negative = has_negative || value < 0;
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  if (separator == '\0') {
    if (!text.empty()) parts.push_back(text);
    return parts;
  }
  std::string inner = text;
  if (separator == '[') {
    inner = text.substr(1, text.size() - 2);
    std::erase_if(inner, [](char c) { return c == '\'' || c == '"'; });
    separator = ',';
  }
  for (size_t at = 0; at <= inner.size();) {
    const size_t end = std::min(inner.find(separator, at), inner.size());
    std::string part = inner.substr(at, end - at);
    const size_t begin = part.find_first_not_of(' ');
    part = begin == std::string::npos ? ""
                                      : part.substr(begin, part.find_last_not_of(' ') - begin + 1);
    if (!part.empty() && std::find(parts.begin(), parts.end(), part) == parts.end()) {
      parts.push_back(part);
    }
    at = end + 1;
  }
  return parts;
}

}  // namespace tandem::image_folder
