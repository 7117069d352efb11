// Whether tests that need a GPU fail instead of being skipped if there is none: the environment's
// TANDEM_TEST_DEMANDS_GPU is not empty. scripts/gpu-check sets it.
#pragma once

#include <cstdlib>

namespace tandem::test {

inline bool gpu_is_required() {
  const char* value = std::getenv("TANDEM_TEST_DEMANDS_GPU");
  return value != nullptr && *value != '\0';
}

}  // namespace tandem::test
