// Files of the user. Reading: regular files only, and a failing disk is an Error, never a short
// file. Writing: a reader sees the old file or the whole new one, by a temporary file, fsync and
// rename.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "plugins/path_status.h"
#include "plugins/regular_file.h"

namespace tandem {

// A regular file being read. Every failure is an Error: "WHAT 'PATH' cannot be read: why".
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path, std::string what = "file");

  [[nodiscard]] uint64_t size() const { return static_cast<uint64_t>(file_.size()); }
  // Returns the number of bytes read, fewer than `bytes` only at the end of the file.
  [[nodiscard]] size_t read(uint64_t offset, void* target, size_t bytes) const;
  // Error for a large file that is nearly all a hole.
  void require_stored() const;

 private:
  [[noreturn]] void fail(int reason) const;

  RegularFile file_;
  std::string path_, what_;
};

// Of what users and Tandem write. A larger file is of another kind, or made to take all memory.
constexpr uint64_t max_text_bytes = uint64_t{64} << 20;
// Of files with a line for each step or damaged image.
constexpr uint64_t max_line_bytes = uint64_t{1} << 32;

// The bytes of a regular file. Error also for one of more than max_text_bytes.
[[nodiscard]] std::string read_text_file(const std::filesystem::path& path,
                                         const std::string& what = "file");

// Calls `take` for each line of a regular file of at most max_line_bytes, without its end. The
// file is never in memory as a whole. A line of more than 1 MiB, as a hole in the file is one, is
// left out.
void read_lines(const std::filesystem::path& path,
                const std::function<void(const std::string&)>& take);

enum class OutputMode {
  // A new file; one of this name, or a link, is removed first. Error if another process writes it,
  // and if a pipe, a device or a folder has the name.
  create,
  append,    // at the end of a regular file, which is created if there is none
  directly,  // into a device or a pipe (/dev/stdout)
};

// A file being written. Every failure is an Error ("... no space left on device"), after which a
// created file is removed. No link is followed, except `directly`.
class OutputFile {
 public:
  // `shown`: the name in messages, if it is another one.
  explicit OutputFile(const std::filesystem::path& path, const std::filesystem::path& shown = {},
                      OutputMode mode = OutputMode::create);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t bytes);
  // False once its name was removed or given to another file.
  [[nodiscard]] bool is_in_place() const;
  // Syncs and closes the file. Without it, or the next, a created file is removed.
  void finish();
  // As finish(), and gives the file the name `target`, whatever had it. Error if the file has lost
  // its own name, as that may be of what another user has planted.
  void finish_as(const std::filesystem::path& target);

 private:
  [[noreturn]] void fail(const char* what) const;
  void create();
  void sync();
  void close();

  std::filesystem::path path_, shown_;
  OutputMode mode_;
  int descriptor_ = -1;
};

// The path from the root. Error where that cannot be told, as in a folder that has been removed.
[[nodiscard]] std::filesystem::path absolute_path(const std::filesystem::path& path);

// What is at a path. Error if a disk that fails does not tell: "'PATH' cannot be looked up: why".
[[nodiscard]] PathStatus path_status(const std::filesystem::path& path);
// The paths of what is in a folder, sorted; none where there is no such folder. Error if it cannot
// be listed to its end: "folder 'PATH' cannot be listed: why".
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
// As much of it as can be listed.
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder,
                                                            std::error_code& failure);
// False, with errno, if not all of it can be written.
[[nodiscard]] bool write_bytes(int descriptor, const void* data, size_t bytes);
// Whether the path still leads to the file or folder that was opened.
[[nodiscard]] bool is_at(int descriptor, const std::filesystem::path& path);
// The name of a file until it is complete: PATH.new.
[[nodiscard]] std::filesystem::path pending_file(const std::filesystem::path& path);
// Renames a synced file over `target` and syncs the folder. Error for a source that is a link, a
// pipe or anything else than a regular file.
void replace_file(const std::filesystem::path& source, const std::filesystem::path& target);
// What other files have written to it is then on the disk. No error if there is no such file.
void sync_file(const std::filesystem::path& path);
// Makes `target` another name of a synced file, in place of what had the name. False on a file
// system without such links, and for a source that is a link.
[[nodiscard]] bool link_file(const std::filesystem::path& source,
                             const std::filesystem::path& target);
// Writes the bytes of a file to another one, which is synced.
void write_copy(const std::filesystem::path& source, const std::filesystem::path& target);
// A text as the name of a file in a folder, which leads nowhere else: '/', control characters and a
// '.' at the beginning become '_'; what exceeds 100 bytes is cut off.
[[nodiscard]] std::string as_file_name(const std::string& text);
// Makes a folder and those above it that are missing, which no others than the user may write to,
// whatever the umask. Throws Error: "WHAT 'PATH' cannot be made: why".
void make_folders(const std::filesystem::path& path, const std::string& what = "folder");
// Writes a whole text file at once.
void write_text_file(const std::filesystem::path& path, const std::string& text);

// Where programs look for plugins and models: the folder of this program, and of the file that
// holds core, libtandem or the program itself. Empty if the system does not tell.
[[nodiscard]] std::filesystem::path program_folder();
[[nodiscard]] std::filesystem::path library_folder();
// The folders that an environment variable lists, separated by colons.
[[nodiscard]] std::vector<std::filesystem::path> listed_folders(const char* variable);

}  // namespace tandem
