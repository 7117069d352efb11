// A file that appears under its name when it is complete, or not at all. Until then it has no name,
// so that nothing remains of it however the process ends. On file systems without such files it is
// written as PATH.part-PROCESS and removed unless the process is killed.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/sdk.h"

namespace tandem::image_folder {

class NewFile {
 public:
  // Throws a Refusal that names the file if it exists already or cannot be written.
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] uint64_t size() const { return size_; }
  void append(const std::string& bytes);
  // `beginning`: the first bytes, without which the file is invalid; written when all others are on
  // disk.
  void finish(const std::string& beginning);

 private:
  void open_without_name();
  void open_as_part();
  void sync() const;
  void write_at(uint64_t offset, const std::string& bytes) const;
  [[nodiscard]] std::string name_in_proc() const;
  [[nodiscard]] sdk::Refusal broken() const;

  std::string path_, part_;  // part_: "" while it has no name
  int descriptor_ = -1;
  uint64_t size_ = 0;
  bool finished_ = false;
};

}  // namespace tandem::image_folder
