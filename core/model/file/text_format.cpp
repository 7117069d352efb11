#include "core/model/file/text_format.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "core/base/files/files.h"
#include "core/base/text/decimal_comma.h"
#include "core/base/text/strings.h"
#include "plugins/plain_text.h"

namespace tandem {

namespace {

// ASCII only, whatever the locale.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::string byte_name(char c) {
  return c >= ' ' && c <= '~' ? fmt::format("'{}'", c)
                              : fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(c));
}

enum class TokenKind { word, number, string, punctuation, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // of a string: unquoted and unescaped
  Location location;
  [[nodiscard]] bool is(char c) const {
    return kind == TokenKind::punctuation && text.size() == 1 && text[0] == c;
  }
};

// A token for a message: "'}'", "the text \"abc\"", "the end of the file".
std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the file";
  if (token.kind != TokenKind::string) return "'" + token.text + "'";
  constexpr size_t shown = 40;
  return "the text " + quote(token.text.substr(0, shown)) +
         (token.text.size() > shown ? "..." : "");
}

// The tokens of the text, one at a time, each with its location. Any bytes are read to the end or
// to an Error with file:line:column. Comments and spaces are dropped here.
class Lexer {
 public:
  // `text` must outlive the lexer; `file` is used in messages only.
  Lexer(const std::string& text, const std::string& file) : text_(text), file_(file) { next(); }

  [[nodiscard]] const Token& peek() const { return token_; }
  Token take() {
    Token taken = std::move(token_);
    next();
    return taken;
  }

 private:
  [[nodiscard]] bool at_end() const { return position_ == text_.size(); }
  [[nodiscard]] char here() const { return at_end() ? '\0' : text_[position_]; }
  [[nodiscard]] Location location() const { return {file_, line_, column_}; }

  char advance() {
    const char c = text_[position_++];
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
    return c;
  }

  void skip_space() {
    while (!at_end()) {
      size_t bytes = plain::blank_bytes(text_, position_);
      if (here() == '#') bytes = std::min(text_.find('\n', position_), text_.size()) - position_;
      if (bytes == 0) break;
      while (bytes-- > 0) advance();
    }
  }

  void next() {
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

  void read_number() {
    token_.kind = TokenKind::number;
    std::string& text = token_.text;
    while (is_digit(here()) || is_letter(here()) || here() == '.' ||
           ((here() == '-' || here() == '+') && !text.empty() &&
            (text.back() == 'e' || text.back() == 'E') && !text.starts_with("0x"))) {
      text += advance();
    }
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (hexadecimal) return;
    const auto in_number = [](char c) {
      return is_digit(c) || std::string_view(".eE+-").find(c) != std::string_view::npos;
    };
    // protobuf allows the suffix 'f' of C++ literals. It has no effect.
    const bool has_suffix = text.size() > 1 && (text.back() == 'f' || text.back() == 'F');
    const std::string value = has_suffix ? text.substr(0, text.size() - 1) : text;
    if (!std::all_of(value.begin(), value.end(), in_number)) {
      throw error("{}: '{}' is not a number", to_string(token_.location), text);
    }
    text = value;
  }

  void read_string() {
    token_.kind = TokenKind::string;
    const char quotation = advance();
    bool is_path = false;
    while (here() != quotation || at_end()) {
      if (at_end() || here() == '\n') {
        throw error("{}: this text is not closed: expected {} before the end of the line",
                    to_string(token_.location), byte_name(quotation));
      }
      const char c = advance();
      is_path = is_path || (c == '\\' && begins_path(token_.text) && here() != '\\');
      token_.text += c == '\\' && !is_path ? read_escape() : c;
      if (token_.text.back() == '\0') {  // would end a name for plugins, which are written in C
        throw error("{}: this text has a zero byte", to_string(token_.location));
      }
    }
    advance();
  }

  // "C:" and one backslash: a path of Windows, in which no backslash is an escape.
  static bool begins_path(std::string_view text) {
    const char drive = text.empty() ? '\0' : characters::lower(text[0]);
    return text.size() == 2 && drive >= 'a' && drive <= 'z' && text[1] == ':';
  }

  char read_escape() {
    static constexpr std::string_view escapes = "abfnrtv\\'\"?", escaped = "\a\b\f\n\r\t\v\\'\"?";
    const Location place{file_, line_, column_ - 1};
    if (at_end()) throw error("{}: this text is not closed", to_string(token_.location));
    const size_t known = escapes.find(here());
    if (known != std::string_view::npos) {
      advance();
      return escaped[known];
    }
    const bool hexadecimal = here() == 'x' || here() == 'X';
    if (hexadecimal) advance();
    unsigned value = 0;
    const std::string_view digits = text_.substr(position_, hexadecimal ? 2 : 3);
    const char* begin = digits.data();
    const char* end =
        std::from_chars(begin, begin + digits.size(), value, hexadecimal ? 16 : 8).ptr;
    for (const char* digit = begin; digit < end; ++digit) advance();
    if (end == begin || value > 255) {
      throw error(R"({}: unknown escape in a text; known: \n \t \r \\ \" \' \ooo \xhh)",
                  to_string(place));
    }
    return static_cast<char>(value);
  }

  std::string_view text_;
  std::string file_;
  size_t position_ = 0;
  int line_ = 1, column_ = 1;
  Token token_;
};

// Deeper than the file of any net. Keeps a hostile file from exhausting the stack.
constexpr int max_depth = 64;

class Parser {
 public:
  Parser(const std::string& text, const std::string& file) : lexer_(text, file) {}

  Message whole() {
    Message message;
    message.location = lexer_.peek().location;
    while (lexer_.peek().kind != TokenKind::end) field(message, 0);
    return message;
  }

 private:
  [[nodiscard]] Error expected(const std::string& what, const std::string& hint = "") {
    const Token& token = lexer_.peek();
    return error("{}: expected {}, found {}{}", to_string(token.location), what, describe(token),
                 hint);
  }
  bool accept(char punctuation) {
    if (!lexer_.peek().is(punctuation)) return false;
    lexer_.take();
    return true;
  }
  [[nodiscard]] bool at_block() { return lexer_.peek().is('{') || lexer_.peek().is('<'); }

  // For a number with a decimal comma, of which the part before it is read already.
  [[nodiscard]] std::string hint_of_comma(const Message& into) {
    if (lexer_.peek().kind != TokenKind::number || into.fields.empty()) return "";
    return decimal_comma_hint(into.fields.back().text + "," + lexer_.peek().text);
  }

  void field(Message& into, int depth) {
    if (lexer_.peek().kind != TokenKind::word) {
      const Location& at = lexer_.peek().location;
      const bool is_first = at.line == 1 && at.column == 1;
      if (is_first && lexer_.peek().is('[')) {
        throw error(
            "{}: this is a file of Darknet, which is not read: write the net as a .prototxt, "
            "or give an ONNX file of it",
            to_string(at));
      }
      if (is_first && lexer_.peek().is('{')) {
        throw error(
            "{}: this is JSON, which is not read: write the net as a .prototxt, or give an "
            "ONNX file of it",
            to_string(at));
      }
      throw expected(depth == 0 ? "a field's name" : "a field's name or the end of the block",
                     hint_of_comma(into));
    }
    const Token name = lexer_.take();
    const bool colon = accept(':');
    if (lexer_.peek().is('[')) {
      list(into, name, colon, depth);
    } else if (at_block()) {
      block(into, name, depth);
    } else if (colon) {
      scalar(into, name);
    } else {
      throw expected(fmt::format("':' or '{{' after '{}'", name.text));
    }
    if (!accept(',')) accept(';');
  }

  void list(Message& into, const Token& name, bool colon, int depth) {
    lexer_.take();
    if (accept(']')) return;
    do {
      if (at_block()) {
        block(into, name, depth);
      } else if (colon) {
        scalar(into, name);
      } else {
        throw expected(
            fmt::format("'{{' in the list of '{}' (values need a ':' before '[')", name.text));
      }
    } while (accept(','));
    if (!accept(']')) throw expected(fmt::format("',' or ']' in the list of '{}'", name.text));
  }

  void block(Message& into, const Token& name, int depth) {
    if (depth == max_depth) {
      throw error("{}: blocks are nested more than {} deep", to_string(name.location), max_depth);
    }
    if (depth == 0 && ++blocks_ > max_blocks) {
      throw error("{}: '{}' is block {}, but at most {} are read: no net has so many layers",
                  to_string(name.location), name.text, blocks_, max_blocks);
    }
    const Token open = lexer_.take();
    const char close = open.is('{') ? '}' : '>';
    Field field{name.text, "", false, std::make_shared<Message>(), name.location};
    field.message->location = open.location;
    while (!lexer_.peek().is(close)) {
      if (lexer_.peek().kind == TokenKind::end) {
        throw expected(
            fmt::format("'{}' to close '{}' of line {}", close, name.text, name.location.line));
      }
      this->field(*field.message, depth + 1);
    }
    lexer_.take();
    into.fields.push_back(std::move(field));
  }

  void scalar(Message& into, const Token& name) {
    const bool is_quoted = lexer_.peek().kind == TokenKind::string;
    Field field{name.text, "", is_quoted, nullptr, name.location};
    if (is_quoted) {
      while (lexer_.peek().kind == TokenKind::string) field.text += lexer_.take().text;
    } else {
      if (accept('-')) field.text.push_back('-');
      const TokenKind kind = lexer_.peek().kind;
      if (kind != TokenKind::number && kind != TokenKind::word) {
        throw expected(fmt::format("a value for '{}'", name.text));
      }
      field.text += lexer_.take().text;
    }
    into.fields.push_back(std::move(field));
  }

  // Of a file, without those inside of blocks. Each takes some kilobytes, and a plan of as many
  // layers some ten times as much.
  static constexpr size_t max_blocks = 100000;

  Lexer lexer_;
  size_t blocks_ = 0;
};

void write(const Message& message, int depth, std::string& text) {
  const std::string indent(size_t(depth) * 2, ' ');
  for (const Field& field : message.fields) {
    text += indent + field.name;
    if (field.message) {
      text += " {\n";
      write(*field.message, depth + 1, text);
      text += indent + "}\n";
    } else {
      text += ": " + (field.quoted ? quote(field.text) : field.text) + "\n";
    }
  }
}

}  // namespace

const Field* Message::find(const std::string& name) const& {
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    if (field->name == name) return &*field;
  }
  return nullptr;
}

std::vector<const Field*> Message::all(const std::string& name) const& {
  std::vector<const Field*> found;
  for (const Field& field : fields) {
    if (field.name == name) found.push_back(&field);
  }
  return found;
}

void Message::add(const std::string& name, const std::string& value, bool is_quoted) {
  fields.push_back({name, value, is_quoted, nullptr, {}});
}

Message& Message::add_block(const std::string& name) {
  fields.push_back({name, "", false, std::make_shared<Message>(), {}});
  return *fields.back().message;
}

Message parse_text_format(const std::string& text, const std::string& file) {
  return Parser(text, file).whole();
}

Message read_text_format(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    const bool is_run = path_status(path / "net.prototxt").is_file();
    throw error("'{}' is a folder, but a text file (.prototxt) is needed{}", path.string(),
                is_run
                    ? fmt::format(": '{}' is the net of this run", (path / "net.prototxt").string())
                    : "");
  }
  return parse_text_format(plain_text(read_text_file(path)), path.string());
}

std::string write_text_format(const Message& message) {
  std::string text;
  write(message, 0, text);
  return text;
}

}  // namespace tandem
