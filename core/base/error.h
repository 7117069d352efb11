// The one exception of the core: a message for the user that says what, where, the offending value
// and what would be right. Programs print it as one line and exit with code 1; nothing below them
// aborts.
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

// A place in a file of the user's; printed as "alexnet.prototxt:23:5" (column 0: line only; line 0:
// file only).
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

[[nodiscard]] std::string to_string(const Location& location);

}  // namespace tandem
