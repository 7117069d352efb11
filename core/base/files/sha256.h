// SHA-256 (FIPS 180-4), by which a downloaded file is compared with what its publisher names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem {

class Sha256 {
 public:
  void add(const void* data, size_t bytes);
  // Of all that was added, as 64 hexadecimal digits; nothing can be added after.
  [[nodiscard]] std::string finish();

 private:
  void add_block(const uint8_t* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t bytes_ = 0;
};

}  // namespace tandem
