// Numbers, text and a hash of the bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "plugins/fnv.h"

namespace tandem::picture {

using Bytes = std::span<const unsigned char>;

// The caller checks the length.
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

// Whether the file has this text at `at`; false for a file that is too short.
inline bool has(Bytes file, size_t at, const char* text, size_t length) {
  return file.size() >= at + length && std::memcmp(file.data() + at, text, length) == 0;
}

// The hash of bytes that come in pieces, each of which but the last is a multiple of 8 long. FNV-1a
// by words, mixed at the end, the same on every machine. It distinguishes files and is not for
// security.
class RunningHash {
 public:
  explicit RunningHash(uint64_t all_bytes) : hash_(fnv::begin ^ all_bytes) {}

  void add(Bytes bytes) {
    uint64_t hash = hash_;
    size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
      hash = (hash ^ little_endian(bytes, at, 8)) * fnv::prime;
      hash ^= hash >> 29;
    }
    for (; at < bytes.size(); ++at) hash = fnv::add(hash, bytes[at]);
    hash_ = hash;
  }
  [[nodiscard]] uint64_t value() const {
    const uint64_t hash = (hash_ ^ hash_ >> 32) * 0x9E3779B97F4A7C15U;
    return hash ^ hash >> 29;
  }

 private:
  uint64_t hash_;
};

[[nodiscard]] inline uint64_t hash_of(Bytes bytes) {
  RunningHash hash(bytes.size());
  hash.add(bytes);
  return hash.value();
}

}  // namespace tandem::picture
