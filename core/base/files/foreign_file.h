// A form of file that is known and not read: how it is told, and what converts it. Tables of these
// make messages that name the way out.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem {

struct ForeignFile {
  const char* what;
  std::string_view begins;  // the bytes at `offset`
  size_t offset;
  const char* ending;  // or the end of the name, where bytes do not tell
  const char* conversion;

  // `head`: the first bytes of the file.
  [[nodiscard]] bool is_begun_by(std::string_view head) const {
    return !begins.empty() && head.size() > offset && head.substr(offset).starts_with(begins);
  }
  // The end of a message.
  [[nodiscard]] std::string text() const {
    return fmt::format("it is {}, which is not read: {}", what, conversion);
  }
};

}  // namespace tandem
