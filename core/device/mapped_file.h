// Memory in a file: more than there is beside the processor, and slower. The file has no name and
// ends with the object; its room on the disk is taken at once, so that using it cannot fail later.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem {

class MappedFile {
 public:
  MappedFile() = default;
  // Zeros, in the folder that TMPDIR names, else /var/tmp. Error, with the folder and the bytes, if
  // it cannot be made or has not the room.
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
