// A hash of bytes (FNV-1a by words, mixed at the end): tells files apart, keeps nothing secret. The
// same on every machine.
#pragma once

#include "datasets/picture/bytes.h"

namespace tandem::picture {

[[nodiscard]] inline uint64_t hash_of(Bytes bytes) {
  constexpr uint64_t prime = 0x100000001b3U;
  uint64_t hash = 0xcbf29ce484222325U ^ bytes.size();
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    hash = (hash ^ little_endian(bytes, at, 8)) * prime;
    hash ^= hash >> 29;
  }
  for (; at < bytes.size(); ++at) hash = (hash ^ bytes[at]) * prime;
  hash ^= hash >> 32;
  hash *= 0x9E3779B97F4A7C15U;
  return hash ^ hash >> 29;
}

}  // namespace tandem::picture
