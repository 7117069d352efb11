// The safetensors format: named float32 arrays and a map of texts in one file. write_safetensors()
// is atomic: a temporary file, fsync, rename; a reader sees the old file or the new one. Reading
// checks everything before it believes it: files of ours (metadata "format": "tandem") have a
// CRC-32 of every array in their metadata ("crc32 NAME"), and one of the metadata themselves
// ("crc32").
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/files/files.h"

namespace tandem {

struct NamedArray {
  std::string name;
  std::vector<int64_t> shape;
  const float* values = nullptr;  // borrowed, product of shape floats
};

struct SafetensorsFile {
  struct Array {
    std::vector<int64_t> shape;
    std::vector<float> values;  // empty until they are read
    std::string name;           // in the file
    uint64_t offset = 0;        // of the first value, in the file
    uint64_t count = 0;         // of values
  };
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> metadata;  // without the checksums
};

// Writes and syncs `path` itself, not atomically; Error ("... no space left on device") removes it
// again.
void write_safetensors_plain(const std::filesystem::path& path,
                             const std::vector<NamedArray>& arrays,
                             const std::map<std::string, std::string>& metadata);
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& arrays,
                       const std::map<std::string, std::string>& metadata);
// Arrays of integers, which other programs' files have for counters.
enum class Integers { refused, left_out };
// A file whose arrays are read one by one, after their shapes were compared with what is wanted: a
// file of some KB on the disk may claim any size.
class SafetensorsReader {
 public:
  // Reads the header. Error for a file that is missing, truncated, damaged or not a safetensors
  // file, with its path and why.
  explicit SafetensorsReader(const std::filesystem::path& path,
                             Integers integers = Integers::refused);

  // The metadata, and the arrays without their values.
  [[nodiscard]] const SafetensorsFile& contents() const { return contents_; }
  // The values of one of these arrays. Takes as much memory as its shape says. Error for damage.
  [[nodiscard]] std::vector<float> values(const SafetensorsFile::Array& array) const;

 private:
  std::filesystem::path path_;
  InputFile input_;
  std::map<std::string, std::string> all_metadata_;  // with the checksums
  SafetensorsFile contents_;
};

// Only the metadata: cheap for large files.
[[nodiscard]] std::map<std::string, std::string> read_safetensors_metadata(
    const std::filesystem::path& path);

}  // namespace tandem
