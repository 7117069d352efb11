// The words of protobuf's text format, one at a time, each with its place. It reads any bytes to
// the end or to an Error with file:line:column; comments and spaces vanish here.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"

namespace tandem {

enum class TokenKind { word, number, string, punctuation, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // of a string: unquoted and unescaped
  Location location;
  [[nodiscard]] bool is(char c) const {
    return kind == TokenKind::punctuation && text.size() == 1 && text[0] == c;
  }
};

// As it stands in a message: "'}'", "the text \"abc\"", "the end of the file".
[[nodiscard]] std::string describe(const Token& token);
// A string literal that reads as `text` again.
[[nodiscard]] std::string quote(const std::string& text);

class Lexer {
 public:
  // `text` must outlive the lexer; `file` is used in messages only.
  Lexer(const std::string& text, const std::string& file);

  [[nodiscard]] const Token& peek() const { return token_; }
  Token take();

 private:
  [[nodiscard]] bool at_end() const { return position_ == text_.size(); }
  [[nodiscard]] char here() const { return at_end() ? '\0' : text_[position_]; }
  [[nodiscard]] Location location() const { return {file_, line_, column_}; }
  char advance();
  void skip_space();
  void next();
  void read_string();
  char read_escape();
  void read_number();

  std::string_view text_;
  std::string file_;
  size_t position_ = 0;
  int line_ = 1, column_ = 1;
  Token token_;
};

}  // namespace tandem
