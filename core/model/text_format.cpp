#include "core/model/text_format.h"

#include <fstream>
#include <iterator>
#include <system_error>

#include "core/model/text_lexer.h"

namespace tandem {

namespace {

// Deeper than any net's file; keeps a hostile one from exhausting the stack.
constexpr int deepest = 64;
constexpr std::uintmax_t largest_file = std::uintmax_t{64} << 20;

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
  [[nodiscard]] Error expected(const std::string& what) {
    const Token& token = lexer_.peek();
    return error("{}: expected {}, found {}", to_string(token.location), what, describe(token));
  }
  bool accept(char punctuation) {
    if (!lexer_.peek().is(punctuation)) return false;
    lexer_.take();
    return true;
  }
  [[nodiscard]] bool at_block() { return lexer_.peek().is('{') || lexer_.peek().is('<'); }

  void field(Message& into, int depth) {
    if (lexer_.peek().kind != TokenKind::word) {
      throw expected(depth == 0 ? "a field's name" : "a field's name or the end of the block");
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
    if (depth == deepest) {
      throw error("{}: blocks are nested more than {} deep", to_string(name.location), deepest);
    }
    const Token open = lexer_.take();
    const char close = open.is('{') ? '}' : '>';
    Field field;
    field.name = name.text;
    field.location = name.location;
    field.message = std::make_shared<Message>();
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
    Field field;
    field.name = name.text;
    field.location = name.location;
    if (lexer_.peek().kind == TokenKind::string) {
      field.quoted = true;
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

  Lexer lexer_;
};

void write(const Message& message, int depth, std::string& text) {
  const std::string indent(static_cast<size_t>(depth) * 2, ' ');
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

const Field* Message::find(const std::string& name) const {
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    if (field->name == name) return &*field;
  }
  return nullptr;
}

std::vector<const Field*> Message::all(const std::string& name) const {
  std::vector<const Field*> found;
  for (const Field& field : fields) {
    if (field.name == name) found.push_back(&field);
  }
  return found;
}

Message parse_text_format(const std::string& text, const std::string& file) {
  return Parser(text, file).whole();
}

Message read_text_format(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    throw error("'{}' is a folder, but a text file (.prototxt) is needed", path.string());
  }
  const std::uintmax_t size = std::filesystem::file_size(path, failure);
  if (failure) throw error("file '{}' cannot be read: {}", path.string(), failure.message());
  if (size > largest_file) {
    throw error("file '{}' has {} bytes: too many for a net or solver definition (.prototxt)",
                path.string(), size);
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw error("file '{}' cannot be read", path.string());
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return parse_text_format(text, path.string());
}

std::string write_text_format(const Message& message) {
  std::string text;
  write(message, 0, text);
  return text;
}

}  // namespace tandem
