// Memory in a file: larger and slower than main memory. The file has no name and is deleted with
// the object. Its disk space is allocated at once, so that accesses cannot fail later.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem {

class MappedFile {
 public:
  MappedFile() = default;
  // Zeros, in the folder of TMPDIR, else /var/tmp. Error, with the folder and the bytes, if the
  // file cannot be created or there is not enough space.
  explicit MappedFile(int64_t bytes);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  [[nodiscard]] std::byte* data() const { return address_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  std::byte* address_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tandem
