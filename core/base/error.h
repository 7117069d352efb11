// Making the library's exception, Error. Programs print its message as one line and exit with code
// 1; nothing aborts.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

#include "include/tandem/error.h"

namespace tandem {

// At most `max_message_bytes` bytes and a mark: the middle of a longer text is left out.
[[nodiscard]] std::string shortened_message(const std::string& text);
constexpr size_t max_message_bytes = 4000;

// throw error("batch {} is smaller than the {} devices", batch, devices);
template <class... Arguments>
[[nodiscard]] Error error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(shortened_message(fmt::format(format, std::forward<Arguments>(arguments)...)));
}

// A position in a file of the user. Column 0: only the line is known; line 0: only the file.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

// "alexnet.prototxt:23:5"
[[nodiscard]] std::string to_string(const Location& location);
// The end of a message: " (alexnet.prototxt:23:5)", or "" without a file.
[[nodiscard]] std::string in_file(const Location& location);

}  // namespace tandem
