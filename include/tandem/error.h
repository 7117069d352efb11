// The exception that every function of the library throws: a message for the user that says what is
// wrong, where, the value, and what would be right.
#pragma once

#include <stdexcept>

namespace tandem {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tandem
