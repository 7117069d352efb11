// Protobuf's text format, in which Caffe's .prototxt files are written, as a tree of fields with
// their locations. There is no schema here: the reader of a field checks it. Syntax errors are an
// Error with file:line:column.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace tandem {

struct Message;

struct Field {
  std::string name;
  std::string text;                  // a scalar as written, strings unquoted and unescaped
  bool quoted = false;               // the scalar was a string literal
  std::shared_ptr<Message> message;  // null for a scalar
  Location location;
};

struct Message {
  std::vector<Field> fields;  // in file order; repeated fields repeat; [1, 2] lists are expanded
  Location location;

  // The last field of the name, as in protobuf; or null. Fields live as long as their message: a
  // temporary message has neither function.
  [[nodiscard]] const Field* find(const std::string& name) const&;
  [[nodiscard]] std::vector<const Field*> all(const std::string& name) const&;
  const Field* find(const std::string& name) const&& = delete;
  std::vector<const Field*> all(const std::string& name) const&& = delete;
  // Appends a scalar, or a block, which is valid until the next field is added.
  void add(const std::string& name, const std::string& value, bool is_quoted = false);
  Message& add_block(const std::string& name);
};

// `file` is used in messages only.
[[nodiscard]] Message parse_text_format(const std::string& text, const std::string& file);
[[nodiscard]] Message read_text_format(const std::filesystem::path& path);
// The tree as text without the comments, two spaces per level.
[[nodiscard]] std::string write_text_format(const Message& message);

}  // namespace tandem
