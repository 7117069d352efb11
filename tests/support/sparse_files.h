// Files that claim far more than they have on the disk: a beginning, then a hole.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace tandem::test {

// More than any machine has of memory, so that an attempt to take it is an Error.
constexpr uint64_t whole_terabyte = uint64_t{1} << 40;

inline void write_sparse(const std::filesystem::path& path, const std::string& beginning,
                         uint64_t bytes) {
  std::ofstream(path, std::ios::binary) << beginning;
  std::filesystem::resize_file(path, bytes);
}

// False on a file system that stores holes as zeros, or does not tell where they are.
inline bool is_sparse(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const off_t hole = ::lseek(descriptor, 0, SEEK_HOLE), end = ::lseek(descriptor, 0, SEEK_END);
  ::close(descriptor);
  return hole < end;
}

// The most memory that this process had, in bytes.
inline int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// A safetensors file with one array of a TiB. `metadata`: fields of JSON, as "\"step\":\"7\"".
inline void write_sparse_safetensors(const std::filesystem::path& path, const std::string& array,
                                     const std::string& metadata = "") {
  const std::string header = "{\"__metadata__\":{" + metadata + "},\"" + array +
                             "\":{\"dtype\":\"F32\",\"shape\":[" +
                             std::to_string(whole_terabyte / 4) + "],\"data_offsets\":[0," +
                             std::to_string(whole_terabyte) + "]}}";
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i & 255U);
  write_sparse(path, length + header, 8 + header.size() + whole_terabyte);
}

}  // namespace tandem::test
