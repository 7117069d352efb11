#include "core/cli/print.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tandem::cli {

namespace {

// The bytes of what controls a terminal at the beginning of a text; 0: it is shown. In UTF-8 the
// controls of U+0080 to U+009F are two bytes; the marks that turn the direction of what follows are
// U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069.
size_t control_bytes(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0; };
  if (at(0) < 0x20 || at(0) == 0x7f) return 1;
  if (at(0) == 0xc2 && at(1) >= 0x80 && at(1) < 0xa0) return 2;
  if (at(0) == 0xd8 && at(1) == 0x9c) return 2;
  if (at(0) != 0xe2) return 0;
  const bool is_mark = at(1) == 0x80 && (at(2) == 0x8e || at(2) == 0x8f);
  const bool is_embedding = at(1) == 0x80 && at(2) >= 0xaa && at(2) <= 0xae;
  const bool is_isolate = at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9;
  return is_mark || is_embedding || is_isolate ? 3 : 0;
}

}  // namespace

std::string printable(const std::string& text, const std::string& kept) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = control_bytes(std::string_view(text).substr(i));
    if (bytes == 0 || kept.find(text[i]) != std::string::npos) {
      result += text[i++];
      continue;
    }
    for (const size_t end = i + bytes; i < end; ++i) {
      result += fmt::format("\\x{:02x}", uint8_t(text[i]));
    }
  }
  return result;
}

int print_json(const json& tree) {
  say("{}\n", tree.dump(2, ' ', false, json::error_handler_t::replace));
  return 0;
}

}  // namespace tandem::cli
