// A file of a data set. It is read by position, not mapped: a mapped file that becomes shorter ends
// the process, a cut file only costs a sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugins/path_status.h"
#include "plugins/regular_file.h"

namespace tandem::picture {

// What is at a path. Refusal (TANDEM_FAILED) if a disk that fails does not tell.
[[nodiscard]] PathStatus path_status(const std::string& path);

class DataFile {
 public:
  // Refusal (TANDEM_INVALID; TANDEM_FAILED for a disk that fails) that names a file which cannot be
  // read.
  explicit DataFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int64_t size() const { return file_.size(); }  // when it was opened
  // Thread-safe. False if the file does not hold so many bytes there; Refusal (TANDEM_FAILED) that
  // names the file if reading fails.
  [[nodiscard]] bool read(int64_t offset, unsigned char* target, size_t count) const;
  // Refusal (TANDEM_INVALID) for a large file that is nearly all a hole: what is kept of each of
  // its records would need more memory than the file takes on the disk.
  void require_stored() const;

 private:
  std::string path_;
  RegularFile file_;
};

// A text file of at most 4 GiB, as plain_text() of plugins/plain_text.h has it. Refusal as
// DataFile's, and for a file with a zero byte that is not UTF-16.
[[nodiscard]] std::string text_of_file(const std::string& path);

}  // namespace tandem::picture
