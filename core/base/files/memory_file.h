// A file that is in memory only, for what reads files by their path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem {

class MemoryFile {
 public:
  // Copies the bytes. Throws Error if there is no memory for them.
  MemoryFile(const void* data, size_t bytes);
  // A picture as PNM: rows of R,G,B or gray bytes, from the top.
  static MemoryFile picture(const uint8_t* pixels, int64_t height, int64_t width, int64_t channels);
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&&) = delete;

  // Valid in this process as long as the object lives.
  [[nodiscard]] std::string path() const;

 private:
  MemoryFile();
  void write(const void* data, size_t bytes);

  int descriptor_ = -1;
};

}  // namespace tandem
