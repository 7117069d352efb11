// Names in files that people open in a terminal or a spreadsheet, written so that neither acts on
// them: a name that a spreadsheet takes for a formula begins with an apostrophe, and controls and
// marks of direction are \u{HEX}. Reading gives the same name. Of both sides; header-only.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "plugins/plain_text.h"
#include "plugins/text.h"

namespace tandem {

namespace cells {

constexpr std::string_view escape = "\\u{";

// The character at `at` and its bytes. A byte that is none of UTF-8 is itself.
struct Character {
  uint32_t code;
  size_t bytes;
};
inline Character character_at(std::string_view text, size_t at) {
  const size_t bytes = characters::utf8_bytes(text, at);
  const auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(text[at + i])}; };
  if (bytes <= 1) return {byte(0), 1};
  uint32_t code = byte(0) & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) code = code << 6 | (byte(i) & 0x3fU);
  return {code, bytes};
}

// Whether a terminal, or what shows lines of text, acts on it.
inline bool acts(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// Behind any apostrophes, which begin a name that begins with some, too.
inline bool begins_formula(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  if (text.empty()) return false;
  const uint32_t code = character_at(text, 0).code;
  const bool is_wide = code >= 0xff01 && code <= 0xff5e;  // forms of the same signs
  const uint32_t narrow = is_wide ? code - 0xfee0 : code;
  return narrow == '=' || narrow == '+' || narrow == '-' || narrow == '@';
}

inline bool is_number(const std::string& text) {
  char* end = nullptr;
  (void)std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

}  // namespace cells

[[nodiscard]] inline std::string safe_cell(const std::string& name) {
  std::string cell = cells::begins_formula(name) && !cells::is_number(name) ? "'" : "";
  for (size_t at = 0; at < name.size();) {
    const cells::Character one = cells::character_at(name, at);
    const bool is_escape = std::string_view(name).substr(at).starts_with(cells::escape);
    const bool is_lone = one.bytes == 1 && one.code >= 0x80;  // no UTF-8: stays as it is
    if ((cells::acts(one.code) && !is_lone) || is_escape) {
      char digits[8];
      const auto end = std::to_chars(digits, digits + sizeof digits, one.code, 16).ptr;
      cell += std::string(cells::escape) + std::string(digits, end) + "}";
    } else {
      cell.append(name, at, one.bytes);
    }
    at += one.bytes;
  }
  return cell;
}

[[nodiscard]] inline std::string name_of_cell(std::string_view cell) {
  if (cell.starts_with('\'') && cells::begins_formula(cell)) cell.remove_prefix(1);
  std::string name;
  for (size_t at = 0; at < cell.size();) {
    const std::string_view rest = cell.substr(at);
    const size_t close = rest.starts_with(cells::escape) ? rest.find('}') : std::string_view::npos;
    uint32_t code = 0;
    if (close != std::string_view::npos) {
      const char* first = rest.data() + cells::escape.size();
      const auto [stop, status] = std::from_chars(first, rest.data() + close, code, 16);
      if (status == std::errc{} && stop == rest.data() + close &&
          (cells::acts(code) || code == '\\')) {
        plain::append_utf8(code, name);
        at += close + 1;
        continue;
      }
    }
    name += cell[at++];
  }
  return name;
}

}  // namespace tandem
