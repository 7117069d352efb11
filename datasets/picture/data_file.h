// A file that stays open and is read by position, not mapped: a mapped file that becomes shorter
// ends the process, a failed read only costs a sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem::picture {

class DataFile {
 public:
  // Refusal (TANDEM_INVALID) that names a file which cannot be read.
  explicit DataFile(const std::string& path);
  ~DataFile();
  DataFile(DataFile&& other) noexcept;
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int64_t size() const { return size_; }  // when it was opened
  // Thread-safe. False if the file does not hold so many bytes there.
  [[nodiscard]] bool read(int64_t offset, unsigned char* target, size_t count) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace tandem::picture
