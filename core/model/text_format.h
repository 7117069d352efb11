// Protobuf text format as a tree with places: what Caffe's .prototxt files are written in. It knows
// no schema; whoever reads a field checks it. Syntax errors are an Error with file:line:column.
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

  [[nodiscard]] const Field* find(
      const std::string& name) const;  // the last one, as protobuf does; or null
  [[nodiscard]] std::vector<const Field*> all(const std::string& name) const;
};

// `file` is used in messages only.
[[nodiscard]] Message parse_text_format(const std::string& text, const std::string& file);
[[nodiscard]] Message read_text_format(const std::filesystem::path& path);
// The tree as text again (comments are lost), two spaces per level.
[[nodiscard]] std::string write_text_format(const Message& message);

}  // namespace tandem
