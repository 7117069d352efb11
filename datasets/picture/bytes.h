// Numbers and marks in the bytes of a file; whoever reads checks the length first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tandem::picture {

using Bytes = std::span<const unsigned char>;

inline uint64_t big_endian(Bytes file, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | file[at + i];
  return value;
}

inline uint64_t little_endian(Bytes file, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i > 0; --i) value = value << 8 | file[at + i - 1];
  return value;
}

// False also where the file is too short.
inline bool has(Bytes file, size_t at, const char* text, size_t length) {
  return file.size() >= at + length && std::memcmp(file.data() + at, text, length) == 0;
}

}  // namespace tandem::picture
