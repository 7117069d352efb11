// A whole safetensors file in memory, for tests, which accept arrays of any shape.
#pragma once

#include <filesystem>

#include "core/formats/safetensors.h"

namespace tandem::test {

// Error as of SafetensorsReader.
[[nodiscard]] inline ArrayFile read_safetensors(const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  ArrayFile file = reader.contents();
  for (auto& [name, array] : file.arrays) array.values = reader.values(array);
  return file;
}

}  // namespace tandem::test
