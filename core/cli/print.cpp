#include "core/cli/print.h"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace tandem::cli {

std::string printable(const std::string& text, const std::string& kept) {
  const auto at = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0; };
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    // The controls of U+0080 to U+009F are two bytes of UTF-8.
    const bool is_long = at(i) == 0xc2 && at(i + 1) >= 0x80 && at(i + 1) < 0xa0;
    const bool is_control = is_long || at(i) < 0x20 || at(i) == 0x7f;
    if (!is_control || kept.find(text[i]) != std::string::npos) {
      result += text[i];
      continue;
    }
    result += fmt::format("\\x{:02x}", at(i));
    if (is_long) result += fmt::format("\\x{:02x}", at(++i));
  }
  return result;
}

int print_json(const json& tree) {
  say("{}\n", tree.dump(2, ' ', false, json::error_handler_t::replace));
  return 0;
}

}  // namespace tandem::cli
