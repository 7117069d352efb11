// The only exception type of core. Its message tells the user what is wrong, where, the value and
// what would be right. Programs print it as one line and exit with code 1; nothing aborts.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tandem {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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
