// Writing files so that a reader sees the old file or the whole new one: a temporary file, fsync, rename.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace tandem {

// A file being written. Every failure is an Error ("... no space left on device"), after which the file
// is removed. Devices and pipes (/dev/stdout) are written directly and stay.
class OutputFile {
 public:
  // `shown`: the name in messages, if it is another one.
  explicit OutputFile(const std::filesystem::path& path, const std::filesystem::path& shown = {});
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t bytes);
  // Syncs and closes the file. Without it the file is removed.
  void finish();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_, shown_;
  int descriptor_ = -1;
  bool is_plain_ = true;
};

// The name of a file until it is complete: PATH.new.
[[nodiscard]] std::filesystem::path pending_file(const std::filesystem::path& path);
// Renames a synced file over `target` and syncs the folder.
void replace_file(const std::filesystem::path& source, const std::filesystem::path& target);
// Writes a whole text file at once.
void write_text_file(const std::filesystem::path& path, const std::string& text);

}  // namespace tandem
