// Numbers that people write with a decimal comma, where numbers have a point here.
#pragma once

#include <string>
#include <string_view>

#include "core/base/text/strings.h"

namespace tandem {

// "; the decimal mark is a point: 0.1" for a number that is written as "0,1"; "" for other texts.
[[nodiscard]] inline std::string decimal_comma_hint(std::string_view text) {
  std::string with_point(text);
  const size_t comma = with_point.find(',');
  if (comma == std::string::npos) return "";
  with_point[comma] = '.';
  double ignored = 0;
  const bool is_number = with_point.find_first_not_of("0123456789+-.eE") == std::string::npos &&
                         parse_number(with_point, &ignored);
  return is_number ? "; the decimal mark is a point: " + with_point : "";
}

}  // namespace tandem
