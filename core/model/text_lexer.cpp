#include "core/model/text_lexer.h"

#include <algorithm>

namespace tandem {

namespace {

// ASCII only, whatever the locale.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

// The value of a digit in the base, or -1.
int digit_value(char c, int base) {
  int value = -1;
  if (is_digit(c)) value = c - '0';
  if (c >= 'a' && c <= 'f') value = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') value = c - 'A' + 10;
  return value < base ? value : -1;
}

constexpr std::string_view escapes = "abfnrtv\\'\"?";
constexpr std::string_view escaped = "\a\b\f\n\r\t\v\\'\"?";

std::string byte_name(char c) {
  return is_printable(c) ? fmt::format("'{}'", c)
                         : fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the file";
  if (token.kind == TokenKind::string) {
    constexpr size_t shown = 40;
    return "the text " + quote(token.text.substr(0, shown)) +
           (token.text.size() > shown ? "..." : "");
  }
  return "'" + token.text + "'";
}

std::string quote(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const size_t place = escaped.find(c);
    if (place != std::string_view::npos && c != '\'' && c != '?') {
      result += '\\';
      result += escapes[place];
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

Lexer::Lexer(const std::string& text, const std::string& file) : text_(text), file_(file) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
  next();
}

Token Lexer::take() {
  Token taken = std::move(token_);
  next();
  return taken;
}

char Lexer::advance() {
  const char c = text_[position_++];
  if (c == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
  return c;
}

void Lexer::skip_space() {
  while (!at_end() && (is_space(here()) || here() == '#')) {
    if (advance() != '#') continue;
    while (!at_end() && here() != '\n') advance();
  }
}

void Lexer::next() {
  skip_space();
  token_ = Token{TokenKind::end, "", location()};
  if (at_end()) return;
  const char c = here();
  if (is_letter(c)) {
    token_.kind = TokenKind::word;
    while (is_letter(here()) || is_digit(here())) token_.text += advance();
  } else if (is_digit(c) || c == '.') {
    read_number();
  } else if (c == '"' || c == '\'') {
    read_string();
  } else if (std::string_view("{}<>[]:,;-").find(c) != std::string_view::npos) {
    token_.kind = TokenKind::punctuation;
    token_.text = advance();
  } else {
    throw error("{}: {} has no meaning here; is this a text file (.prototxt)?",
                to_string(location()), byte_name(c));
  }
}

void Lexer::read_number() {
  token_.kind = TokenKind::number;
  std::string& text = token_.text;
  while (is_digit(here()) || is_letter(here()) || here() == '.' ||
         ((here() == '-' || here() == '+') && !text.empty() &&
          (text.back() == 'e' || text.back() == 'E') && !text.starts_with("0x"))) {
    text += advance();
  }
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const auto in_number = [](char c) {
    return is_digit(c) || std::string_view(".eE+-fF").find(c) != std::string_view::npos;
  };
  if (!hexadecimal && !std::all_of(text.begin(), text.end(), in_number)) {
    throw error("{}: '{}' is not a number", to_string(token_.location), text);
  }
  // The 'f' of C++ literals, which protobuf allows, says nothing.
  if (!hexadecimal && text.size() > 1 && (text.back() == 'f' || text.back() == 'F')) {
    text.pop_back();
  }
}

void Lexer::read_string() {
  token_.kind = TokenKind::string;
  const char quotation = advance();
  while (here() != quotation || at_end()) {
    if (at_end() || here() == '\n') {
      throw error("{}: this text is not closed: expected {} before the end of the line",
                  to_string(token_.location), byte_name(quotation));
    }
    const char c = advance();
    token_.text += c == '\\' ? read_escape() : c;
  }
  advance();
}

char Lexer::read_escape() {
  const Location place{file_, line_, column_ - 1};
  if (at_end()) throw error("{}: this text is not closed", to_string(token_.location));
  const size_t known = escapes.find(here());
  if (known != std::string_view::npos) {
    advance();
    return escaped[known];
  }
  const bool hexadecimal = here() == 'x' || here() == 'X';
  if (hexadecimal) advance();
  const int base = hexadecimal ? 16 : 8;
  const int most = hexadecimal ? 2 : 3;
  int value = 0;
  int digits = 0;
  for (; digits < most && digit_value(here(), base) >= 0; ++digits) {
    value = value * base + digit_value(advance(), base);
  }
  if (digits == 0 || value > 255) {
    throw error(R"({}: unknown escape in a text; known: \n \t \r \\ \" \' \ooo \xhh)",
                to_string(place));
  }
  return static_cast<char>(value);
}

}  // namespace tandem
