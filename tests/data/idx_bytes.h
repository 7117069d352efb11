// Parts of the files of MNIST for tests.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::test {

// The four bytes of a number, the highest first.
[[nodiscard]] inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 255U);
  return bytes;
}

}  // namespace tandem::test
