// The message of a refused call, for tests that compare whole sentences.
#pragma once

#include <string>

#include "core/base/error.h"

namespace tandem::test {

template <class Function>
[[nodiscard]] std::string thrown(Function&& function) {
  try {
    function();
  } catch (const Error& failure) {
    return failure.what();
  }
  return "(nothing was thrown)";
}

}  // namespace tandem::test
