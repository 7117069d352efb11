// Named arrays of floats in a file of any program: safetensors, alone or in shards, and PyTorch's
// own. A reader has the names and shapes first; values are read one array at a time, after their
// shapes were compared with what is wanted: a file of some KB on the disk may claim any size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

enum class ElementType { f32, f16, bf16, f64 };
[[nodiscard]] uint64_t size_of(ElementType type);  // in bytes

// Messages contain names and shapes.
constexpr size_t max_array_name = 1000, max_array_axes = 32;

struct ArrayFile {
  struct Array {
    std::vector<int64_t> shape;
    std::vector<float> values;  // empty until they are read
    std::string name;           // in the file
    uint64_t offset = 0;        // of the first value, in bytes, in the part
    uint64_t count = 0;         // of values
    ElementType type = ElementType::f32;
    std::vector<int64_t> strides;  // in values; empty: one after the other
    uint64_t part = 0;             // of the file: a shard, a record
  };
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> metadata;  // without the checksums
  std::string note;  // what was chosen among several things in the file, for the user; or ""
};

class ArrayReader {
 public:
  ArrayReader() = default;
  virtual ~ArrayReader() = default;
  ArrayReader(const ArrayReader&) = delete;
  ArrayReader& operator=(const ArrayReader&) = delete;

  // The metadata, and the arrays without their values. Arrays of integers, which other programs'
  // files have for counters, are left out.
  [[nodiscard]] const ArrayFile& contents() const { return contents_; }
  // The values of one of these arrays as float32, to nearest. Takes as much memory as its shape
  // says. Error for damage.
  [[nodiscard]] virtual std::vector<float> values(const ArrayFile::Array& array) const = 0;

 protected:
  friend std::unique_ptr<ArrayReader> open_arrays(const std::filesystem::path& path);
  ArrayFile contents_;
};

// The values of `bytes`, little-endian, as float32.
[[nodiscard]] std::vector<float> floats_of(std::span<const char> bytes, ElementType type);

}  // namespace tandem
