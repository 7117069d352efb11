// Making the library's exception, Error. Programs print its message as one line and exit with code
// 1; nothing aborts.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "include/tandem/error.h"

namespace tandem {

// throw error("batch {} is smaller than the {} devices", batch, devices);
template <class... Arguments>
[[nodiscard]] Error error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Error(fmt::format(format, std::forward<Arguments>(arguments)...));
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
