// A file that appears under its own name when it is whole, or not at all. It has no name before, so
// that nothing is left of it however the process ends; where the file system has no such files, it
// is written as PATH.part-PROCESS and removed unless the process is killed.
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
  // `beginning`: what makes the file one, written when all else is on the disk.
  void finish(const std::string& beginning);

 private:
  void open_without_name();
  void open_as_part();
  void write_at(uint64_t offset, const std::string& bytes) const;
  [[nodiscard]] std::string name_in_proc() const;
  [[nodiscard]] sdk::Refusal broken() const;

  std::string path_, part_;  // part_: "" while it has no name
  int descriptor_ = -1;
  uint64_t size_ = 0;
  bool finished_ = false;
};

}  // namespace tandem::image_folder
