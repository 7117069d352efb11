// The safetensors format: named arrays and a map of texts in one file. Arrays are written as
// float32. write_safetensors() is atomic: a temporary file, fsync, rename; a reader sees the old
// file or the new one. Reading checks everything before it believes it: files of ours (metadata
// "format": "tandem") have a CRC-32 of every array in their metadata ("crc32 NAME"), and one of the
// metadata themselves
// ("crc32").
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/files/files.h"
#include "core/formats/arrays.h"

namespace tandem {

struct NamedArray {
  std::string name;
  std::vector<int64_t> shape;
  const float* values = nullptr;  // borrowed, product of shape floats
};

// Writes and syncs `path` itself, not atomically; Error ("... no space left on device") removes it
// again.
void write_safetensors_plain(const std::filesystem::path& path,
                             const std::vector<NamedArray>& arrays,
                             const std::map<std::string, std::string>& metadata);
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& arrays,
                       const std::map<std::string, std::string>& metadata);

class SafetensorsReader : public ArrayReader {
 public:
  // Reads the header. Error for a file that is missing, truncated, damaged or not a safetensors
  // file, with its path and why.
  explicit SafetensorsReader(const std::filesystem::path& path);
  [[nodiscard]] std::vector<float> values(const ArrayFile::Array& array) const override;

 private:
  std::filesystem::path path_;
  InputFile input_;
  std::map<std::string, std::string> all_metadata_;  // with the checksums
};

// Only the metadata: cheap for large files.
[[nodiscard]] std::map<std::string, std::string> read_safetensors_metadata(
    const std::filesystem::path& path);

}  // namespace tandem
