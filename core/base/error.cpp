#include "core/base/error.h"

namespace tandem {

std::string to_string(const Location& location) {
  std::string result = location.file;
  if (location.line > 0) result += fmt::format(":{}", location.line);
  if (location.line > 0 && location.column > 0) result += fmt::format(":{}", location.column);
  return result;
}

std::string in_file(const Location& location) {
  const std::string place = to_string(location);
  return place.empty() ? "" : " (" + place + ")";
}

}  // namespace tandem
