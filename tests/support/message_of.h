// The message of a refused call, for tests that compare whole sentences.
#pragma once

#include <string>

#include "core/base/error.h"

namespace tandem::test {

// What the Error says that `action` throws; "" if it throws none.
template <class Action>
[[nodiscard]] std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace tandem::test
