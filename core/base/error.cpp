#include "core/base/error.h"

namespace tandem {
namespace {

// No later than `at`, and not within a character of UTF-8.
size_t boundary(const std::string& text, size_t at) {
  constexpr size_t max_character = 4;
  for (size_t i = at; i + max_character > at && i > 0; --i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return i;
  }
  return at;
}

}  // namespace

std::string shortened_message(const std::string& text) {
  constexpr size_t end = 500;  // often has the file and the line
  if (text.size() <= max_message_bytes) return text;
  return text.substr(0, boundary(text, max_message_bytes - end)) + " [...] " +
         text.substr(boundary(text, text.size() - end));
}

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
