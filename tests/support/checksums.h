// Weight files of ours without their checksums.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_folder.h"

namespace tandem::test {

// The keys of the checksums become keys that mean nothing; the length stays.
inline void remove_checksums(const std::filesystem::path& file) {
  std::string bytes = read_text(file);
  const std::string key = "\"crc32";
  for (size_t at = bytes.find(key); at != std::string::npos; at = bytes.find(key, at)) {
    bytes[at + 1] = 'x';
  }
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace tandem::test
