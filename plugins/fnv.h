// FNV-1a (Fowler, Noll, Vo), 64 bits: the hash of names, plans and files, the same on every
// machine. It distinguishes them and is not for security.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem::fnv {

constexpr uint64_t begin = 0xcbf29ce484222325U, prime = 0x100000001b3U;

// With one byte more.
[[nodiscard]] constexpr uint64_t add(uint64_t hash, unsigned char byte) {
  return (hash ^ byte) * prime;
}

[[nodiscard]] constexpr uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = begin;
  for (const char c : bytes) hash = add(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace tandem::fnv
