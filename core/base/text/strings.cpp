#include "core/base/text/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace tandem {
namespace {

// How far a typed name is from a known one; an abbreviation ("Conv") is near. If more than half of
// a word differs, it is another word, however short.
size_t name_distance(std::string_view name, std::string_view candidate) {
  const auto same = [](char a, char b) { return characters::lower(a) == characters::lower(b); };
  const bool is_abbreviated = name.size() >= 3 && candidate.size() > name.size() &&
                              std::equal(name.begin(), name.end(), candidate.begin(), same);
  const size_t distance = is_abbreviated ? 1 : edit_distance(name, candidate);
  return 2 * distance <= std::max(name.size(), candidate.size()) ? distance : std::string::npos;
}

// One decimal below 100, none above, and none where it would be ".0".
std::string short_number(double value) {
  const double rounded = std::abs(value) < 99.95 ? std::round(value * 10) / 10 : std::round(value);
  return fmt::format("{}", rounded);
}

// The text with U+FFFD in place of each byte that is of no well-formed character.
std::string valid_utf8(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = characters::utf8_bytes(text, at);
    if (bytes == 0) {
      result += "\xEF\xBF\xBD";
    } else {
      result += text.substr(at, bytes);
    }
    at += std::max<size_t>(bytes, 1);
  }
  return result;
}

template <class Number>
bool parse_whole(std::string_view text, Number* value) {
  // People write a leading '+', which std::from_chars does not accept.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  Number result = 0;
  const auto [stop, status] = std::from_chars(text.data(), end, result);
  if (status != std::errc{} || stop != end) return false;
  *value = result;
  return true;
}

}  // namespace

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  return suggest_nearest(name, known, 2, name_distance);
}

std::string human_bytes(int64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1023.5 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", short_number(value), units[unit]);
}

std::string human_seconds(double seconds) {
  constexpr std::array units{"s", "ms", "us", "ns"};
  if (seconds == 0 || !std::isfinite(seconds)) return fmt::format("{} s", seconds);
  size_t unit = 0;
  while (std::abs(seconds) < 0.99995 && unit + 1 < units.size()) {
    seconds *= 1000;
    ++unit;
  }
  return fmt::format("{} {}", short_number(seconds), units[unit]);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

bool parse_integer(std::string_view text, int64_t* value) {
  return parse_whole(text, value);
}

bool parse_integer(std::string_view text, uint64_t* value) {
  return parse_whole(text, value);
}

bool parse_number(std::string_view text, double* value) {
  return parse_whole(text, value);
}

bool parse_boolean(std::string_view text, bool* value) {
  const bool yes = text == "true" || text == "True" || text == "t" || text == "1";
  const bool no = text == "false" || text == "False" || text == "f" || text == "0";
  if (yes || no) *value = yes;
  return yes || no;
}

std::string first_bytes(const std::string& text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

std::string quote(std::string_view text) {
  static constexpr std::string_view letters = "abfnrtv\\\"", escaped = "\a\b\f\n\r\t\v\\\"";
  std::string result = "\"";
  for (const char c : text) {
    const size_t place = escaped.find(c);
    if (place != std::string_view::npos) {
      result += '\\';
      result += letters[place];
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string escape_xml(std::string_view bytes) {
  const std::string text = valid_utf8(bytes);
  static constexpr std::array entities{"&amp;", "&lt;", "&gt;", "&quot;"};
  std::string result;
  for (const char c : text) {
    const size_t special = std::string_view("&<>\"").find(c);
    if (special == std::string_view::npos) {
      result += c;
    } else {
      result += entities[special];
    }
  }
  return result;
}

std::string to_base64(std::string_view bytes) {
  static constexpr const char* digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) {
      const auto byte = i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
      three = three << 8 | byte;
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : digits[three >> (18 - 6 * k) & 63U];
    }
  }
  return text;
}

}  // namespace tandem
