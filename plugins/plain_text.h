// What all readers of text files have in common, of core and of plugins: however an editor saved a
// file, its text has no byte order mark, lines that end in '\n', and blanks that are spaces where
// blanks divide words. Header-only, without tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

namespace plain {

inline void append_utf8(uint32_t code, std::string& text) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0U | code >> 6);
    add(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    add(0xe0U | code >> 12);
    add(0x80U | (code >> 6 & 0x3fU));
    add(0x80U | (code & 0x3fU));
  } else {
    add(0xf0U | code >> 18);
    add(0x80U | (code >> 12 & 0x3fU));
    add(0x80U | (code >> 6 & 0x3fU));
    add(0x80U | (code & 0x3fU));
  }
}

// Half of a pair that has lost the other one becomes U+FFFD.
inline std::string from_utf16(std::string_view bytes, bool little) {
  const auto unit = [&](size_t at) -> uint32_t {
    const auto one = static_cast<unsigned char>(bytes[at + (little ? 0 : 1)]);
    const auto two = static_cast<unsigned char>(bytes[at + (little ? 1 : 0)]);
    return static_cast<uint32_t>(one) | static_cast<uint32_t>(two) << 8;
  };
  const auto is_first = [](uint32_t code) { return code >= 0xd800 && code < 0xdc00; };
  const auto is_second = [](uint32_t code) { return code >= 0xdc00 && code < 0xe000; };
  std::string text;
  for (size_t at = 0; at + 1 < bytes.size(); at += 2) {
    uint32_t code = unit(at);
    if (is_first(code) && at + 3 < bytes.size() && is_second(unit(at + 2))) {
      code = 0x10000 + ((code - 0xd800) << 10) + (unit(at + 2) - 0xdc00);
      at += 2;
    } else if (is_first(code) || is_second(code)) {
      code = 0xfffd;
    }
    append_utf8(code, text);
  }
  return text;
}

// The bytes of the blank at `at`; 0: there is none. Besides ASCII's those of Unicode: no-break
// spaces, em and thin spaces, the zero-width space and byte order marks inside a text.
inline size_t blank_bytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned one = byte(at), two = byte(at + 1), three = byte(at + 2);
  if (one == ' ' || (one >= '\t' && one <= '\r')) return 1;
  if (one == 0xc2 && two == 0xa0) return 2;
  const bool general =
      one == 0xe2 && two == 0x80 && three >= 0x80 && (three <= 0x8b || three == 0xaf);
  const bool others = (one == 0xe2 && two == 0x81 && three == 0x9f) ||
                      (one == 0xe1 && two == 0x9a && three == 0x80) ||
                      (one == 0xe3 && two == 0x80 && three == 0x80) ||
                      (one == 0xef && two == 0xbb && three == 0xbf);
  return general || others ? 3 : 0;
}

}  // namespace plain

// How the bytes of a text are to be read. UTF-16 has a byte order mark, or of its first letters
// mostly every second byte is zero, and none between them.
enum class TextForm { bytes, little_utf16, big_utf16 };
[[nodiscard]] inline TextForm form_of_text(std::string_view bytes) {
  if (bytes.starts_with("\xff\xfe")) return TextForm::little_utf16;
  if (bytes.starts_with("\xfe\xff")) return TextForm::big_utf16;
  constexpr size_t looked_at = 4096;
  size_t zeros[2] = {0, 0};
  const size_t count = bytes.size() < looked_at ? bytes.size() : looked_at;
  for (size_t i = 0; i < count; ++i) zeros[i % 2] += bytes[i] == '\0' ? 1 : 0;
  if (zeros[0] == 0 && zeros[1] > count / 4) return TextForm::little_utf16;
  return zeros[1] == 0 && zeros[0] > count / 4 ? TextForm::big_utf16 : TextForm::bytes;
}

// The text of a file: UTF-16 becomes UTF-8, a byte order mark is left out, and a line ends as "\n"
// where it ended as "\r\n" or "\r".
[[nodiscard]] inline std::string plain_text(std::string bytes) {
  const TextForm form = form_of_text(bytes);
  if (form != TextForm::bytes) {
    bytes =
        plain::from_utf16(bytes, form == TextForm::little_utf16);  // with its mark, if it has one
  }
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.erase(0, 3);
  if (bytes.find('\r') == std::string::npos) return bytes;
  size_t to = 0;
  for (size_t from = 0; from < bytes.size(); ++from) {
    const bool is_end = bytes[from] == '\r';
    if (is_end && from + 1 < bytes.size() && bytes[from + 1] == '\n') continue;
    bytes[to++] = is_end ? '\n' : bytes[from];
  }
  bytes.resize(to);
  return bytes;
}

// Without the blanks at both ends.
[[nodiscard]] inline std::string_view without_blanks(std::string_view text) {
  for (size_t bytes = 0; (bytes = plain::blank_bytes(text, 0)) > 0;) text.remove_prefix(bytes);
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = plain::blank_bytes(text, at);
    at += bytes > 0 ? bytes : 1;
    if (bytes == 0) end = at;
  }
  return text.substr(0, end);
}

// With a space in place of each blank that is none of ASCII.
[[nodiscard]] inline std::string with_plain_blanks(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = plain::blank_bytes(text, at);
    result += bytes > 1 ? ' ' : text[at];
    at += bytes > 1 ? bytes : 1;
  }
  return result;
}

}  // namespace tandem
