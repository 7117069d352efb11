#include "core/base/files/files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/strings.h"

namespace tandem {

namespace fs = std::filesystem;

namespace {

// Never the number of a standard stream, which a program may have closed.
int open_for_writing(const fs::path& path, int flags) {
  constexpr int first_free = STDERR_FILENO + 1;
  const int opened = ::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC | O_NOCTTY, 0644);
  if (opened < 0 || opened >= first_free) return opened;
  const int moved = ::fcntl(opened, F_DUPFD_CLOEXEC, first_free);
  ::close(opened);
  return moved;
}

// Without waiting for the reader of a pipe; what is written later waits for it.
int open_device(const fs::path& path) {
  const int descriptor = open_for_writing(path, O_NONBLOCK);
  if (descriptor >= 0) ::fcntl(descriptor, F_SETFL, O_WRONLY);
  return descriptor;
}

// A signal may end the call before it is done. A failure is not tried again: the next call may
// succeed without what was lost.
bool is_synced(int descriptor) {
  int result = 0;
  do {
    result = ::fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool is_regular(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

using Look = int (*)(const char* path, struct stat* status);  // stat or lstat

bool finds_opened(int descriptor, const fs::path& path, Look look) {
  struct stat opened {};
  struct stat present {};
  return ::fstat(descriptor, &opened) == 0 && look(path.c_str(), &present) == 0 &&
         opened.st_dev == present.st_dev && opened.st_ino == present.st_ino;
}

// Whether the name is still of the opened file itself, not of a link to it.
bool has_name(int descriptor, const fs::path& path) {
  return finds_opened(descriptor, path, ::lstat);
}

// What has a name that a regular file should have.
std::string kind_of(fs::file_type type) {
  for (const auto& [known, text] : {std::pair{fs::file_type::directory, "a folder"},
                                    {fs::file_type::symlink, "a link"},
                                    {fs::file_type::fifo, "a pipe"},
                                    {fs::file_type::block, "a device"},
                                    {fs::file_type::character, "a device"},
                                    {fs::file_type::socket, "a socket"}}) {
    if (type == known) return text;
  }
  return "no regular file";
}

// Removes a link, or a file that a kill has left. Returns the reason if it cannot; EWOULDBLOCK:
// another process is writing the file, or has just taken its name. Without locks in the file system
// no process seems to write it.
int remove_left(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const bool is_held =
      descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  int reason = EWOULDBLOCK;
  // While this process holds it no other one removes it, so that the name is still of this file.
  if (!is_held && (descriptor < 0 || has_name(descriptor, path))) {
    reason = ::unlink(path.c_str()) == 0 || errno == ENOENT ? 0 : errno;
  }
  if (descriptor >= 0) ::close(descriptor);
  return reason;
}

// The length of a path without the last of its names; 0: it has but one, or is the root.
size_t length_above(const std::string& path, size_t length) {
  while (length > 0 && path[length - 1] != '/') --length;
  while (length > 0 && path[length - 1] == '/') --length;
  return length;
}

// What is at `path`, which is no folder, and stands in its way.
std::string obstacle(const std::string& path) {
  std::error_code code;
  const fs::path target = fs::read_symlink(path, code);
  if (code || ::access(path.c_str(), F_OK) == 0) {
    return fmt::format("'{}' is there and is not a folder", path);
  }
  return fmt::format("'{}' is there and is not a folder: it is a link to '{}', which is missing",
                     path, target.string());
}

// Returns "" or the reason. Makes nothing where the system refuses to look the path up, as one that
// is too long.
std::string make_missing_folders(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::vector<size_t> missing;  // lengths of parts of the path, the longest first
  for (size_t length = path.size(); length > 0; length = length_above(path, length)) {
    const std::string part = path.substr(0, length);
    struct stat status {};
    const bool is_found = ::stat(part.c_str(), &status) == 0;
    if (is_found && S_ISDIR(status.st_mode)) break;
    if (!is_found && errno != ENOENT && errno != ENOTDIR) return std::strerror(errno);
    const bool is_in_the_way = is_found || ::lstat(part.c_str(), &status) == 0;
    if (is_in_the_way) return obstacle(part);
    missing.push_back(length);
  }
  for (; !missing.empty(); missing.pop_back()) {
    const std::string part = path.substr(0, missing.back());
    if (::mkdir(part.c_str(), 0755) == 0) continue;
    const int reason = errno;
    if (PathStatus(part).is_folder()) continue;  // made meanwhile
    return reason == EEXIST ? obstacle(part) : std::strerror(reason);
  }
  return "";
}

void require_at_most(const InputFile& file, uint64_t max_bytes, const fs::path& path,
                     const std::string& what) {
  if (file.size() <= max_bytes) return;
  throw error("{} '{}' has {} bytes, too many: at most {} are read", what, path.string(),
              file.size(), max_bytes);
}

}  // namespace

InputFile::InputFile(const fs::path& path, std::string what)
    : file_(path.string()), path_(path.string()), what_(std::move(what)) {
  if (file_.error() != 0) fail(file_.error());
}

size_t InputFile::read(uint64_t offset, void* target, size_t bytes) const {
  size_t done = 0;
  const int reason = file_.read(static_cast<int64_t>(offset), target, bytes, &done);
  if (reason != 0) fail(reason);
  return done;
}

void InputFile::require_stored() const {
  const int64_t stored = file_.stored_of_hole();
  if (stored < 0) return;
  throw error("{} '{}' {}", what_, path_, RegularFile::text_of_hole(file_.size(), stored));
}

void InputFile::fail(int reason) const {
  throw error("{} '{}' cannot be read: {}", what_, path_, RegularFile::text_of(reason));
}

std::string read_text_file(const fs::path& path, const std::string& what) {
  const InputFile file(path, what);
  require_at_most(file, max_text_bytes, path, what);
  std::string text(file.size(), '\0');
  text.resize(file.read(0, text.data(), text.size()));
  return text;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code failure;
  fs::path result = fs::absolute(path, failure);
  if (!failure) return result;
  if (failure != std::errc::no_such_file_or_directory) {
    throw error("'{}' cannot be looked up: {}", path.string(), failure.message());
  }
  throw error(
      "'{}' cannot be found from the current folder, which has been removed: change to "
      "another one, or give the whole path",
      path.string());
}

void read_lines(const fs::path& path, const std::function<void(const std::string&)>& take) {
  constexpr size_t max_line = size_t{1} << 20, piece_bytes = size_t{1} << 16;
  const InputFile file(path);
  require_at_most(file, max_line_bytes, path, "file");
  std::string piece, line;
  bool is_too_long = false;
  for (uint64_t at = 0; at < file.size(); at += piece_bytes) {
    piece.resize(piece_bytes);
    piece.resize(file.read(at, piece.data(), piece.size()));
    for (size_t begin = 0; begin < piece.size();) {
      const size_t end = std::min(piece.find('\n', begin), piece.size());
      is_too_long = is_too_long || line.size() + (end - begin) > max_line;
      if (!is_too_long) line.append(piece, begin, end - begin);
      begin = end + 1;
      if (end == piece.size()) break;
      if (!is_too_long) take(line);
      line.clear();
      is_too_long = false;
    }
  }
  if (!line.empty() && !is_too_long) take(line);
}

PathStatus path_status(const fs::path& path) {
  PathStatus status(path.string());
  if (status.failure() == 0) return status;
  throw error("'{}' cannot be looked up: {}", path.string(), std::strerror(status.failure()));
}

std::vector<fs::path> entries_of(const fs::path& folder, std::error_code& failure) {
  std::vector<fs::path> found;
  // A loop over the range would throw what a step of it finds.
  for (fs::directory_iterator i(folder, failure), end; !failure && i != end; i.increment(failure)) {
    found.push_back(i->path());
  }
  const bool is_missing =
      failure == std::errc::no_such_file_or_directory || failure == std::errc::not_a_directory;
  if (is_missing && found.empty()) failure.clear();
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code failure;
  std::vector<fs::path> found = entries_of(folder, failure);
  if (!failure) return found;
  throw error("folder '{}' cannot be listed: {}", folder.string(), failure.message());
}

OutputFile::OutputFile(const fs::path& path, const fs::path& shown, OutputMode mode)
    : path_(path), shown_(shown.empty() ? path : shown), mode_(mode) {
  switch (mode_) {
    case OutputMode::create:
      create();
      return;
    case OutputMode::append:
      descriptor_ = open_for_writing(path, O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
      break;
    case OutputMode::directly:
      descriptor_ = open_device(path);
  }
  if (descriptor_ < 0) fail("cannot be written");
  if (mode_ == OutputMode::append && !is_regular(descriptor_)) {
    close();
    throw error("file '{}' cannot be written: it is not a regular file", shown_.string());
  }
}

// The lock tells other processes that the file is not one that a kill has left. A pipe or a device
// of that name is removed: it would take what is written, and then the file's name.
void OutputFile::create() {
  std::error_code ignored;
  const fs::file_type type = fs::symlink_status(path_, ignored).type();
  const auto in_use = [&] {
    return error("file '{}' cannot be created: another process is writing it", shown_.string());
  };
  if (type == fs::file_type::regular || type == fs::file_type::symlink) {
    const int reason = remove_left(path_);
    if (reason == EWOULDBLOCK) throw in_use();
    errno = reason;
    if (reason != 0) fail("cannot be created");
  } else if (type != fs::file_type::not_found && type != fs::file_type::none) {
    throw error("file '{}' cannot be created: '{}' is in the way, which is {}: remove it",
                shown_.string(), path_.string(), kind_of(type));
  }
  descriptor_ = open_for_writing(path_, O_CREAT | O_EXCL | O_NOFOLLOW);
  if (descriptor_ < 0 && errno == EEXIST) throw in_use();  // made since it was looked for
  if (descriptor_ < 0) fail("cannot be created");
  const bool is_taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (is_taken || !is_in_place()) {
    close();  // another process owns it, or it was removed
    throw in_use();
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  // While it is locked, as the next file of this name is another process's.
  if (mode_ == OutputMode::create && is_in_place()) ::unlink(path_.c_str());
  ::close(descriptor_);
}

void OutputFile::write(const void* data, size_t bytes) {
  if (!write_bytes(descriptor_, data, bytes)) fail("cannot be written");
}

bool OutputFile::is_in_place() const {
  return has_name(descriptor_, path_);
}

void OutputFile::finish() {
  sync();
  close();
}

void OutputFile::finish_as(const fs::path& target) {
  sync();
  if (!is_in_place()) {
    throw error("file '{}' cannot be replaced: '{}' was removed or replaced while it was written",
                target.string(), path_.string());
  }
  replace_file(path_, target);  // with the lock, so that it is this file that gets the name
  close();
}

void OutputFile::sync() {
  if (mode_ != OutputMode::directly && !is_synced(descriptor_)) fail("cannot be written");
}

void OutputFile::close() {
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0) fail("cannot be written");
}

void OutputFile::fail(const char* what) const {
  const int reason = errno;
  throw error("file '{}' {}: {}", shown_.string(), what, std::strerror(reason));
}

bool write_bytes(int descriptor, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= size_t(written);
  }
  return true;
}

bool is_at(int descriptor, const fs::path& path) {
  return finds_opened(descriptor, path, ::stat);
}

fs::path pending_file(const fs::path& path) {
  return path.string() + ".new";
}

void replace_file(const fs::path& source, const fs::path& target) {
  std::error_code code;
  const fs::file_type type = fs::symlink_status(source, code).type();
  if (!code && type != fs::file_type::regular) {
    throw error("file '{}' cannot be replaced: '{}', which was to take its name, is {}",
                target.string(), source.string(), kind_of(type));
  }
  fs::rename(source, target, code);
  if (code) throw error("file '{}' cannot be replaced: {}", target.string(), code.message());
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    (void)is_synced(descriptor);
    ::close(descriptor);
  }
}

void sync_file(const fs::path& path) {
  const RegularFile file(path.string());
  if (file.error() == ENOENT) return;
  errno = file.error();
  if (file.error() == 0 && is_synced(file.descriptor())) return;
  throw error("file '{}' cannot be written: {}", path.string(), RegularFile::text_of(errno));
}

bool link_file(const fs::path& source, const fs::path& target) {
  std::error_code code;
  if (fs::symlink_status(source, code).type() != fs::file_type::regular) return false;
  fs::remove(target, code);
  fs::create_hard_link(source, target, code);
  return !code;
}

void write_copy(const fs::path& source, const fs::path& target) {
  constexpr size_t piece = size_t{1} << 20;
  const InputFile from(source);
  OutputFile to(target);
  std::vector<char> bytes(piece);
  for (uint64_t offset = 0; offset < from.size();) {
    const size_t count = from.read(offset, bytes.data(), bytes.size());
    if (count == 0) throw error("file '{}' became shorter while it was copied", source.string());
    to.write(bytes.data(), count);
    offset += count;
  }
  to.finish();
}

void make_folders(const fs::path& path, const std::string& what) {
  if (const std::string reason = make_missing_folders(path.string()); !reason.empty()) {
    throw error("{} '{}' cannot be made: {}", what, path.string(), reason);
  }
}

std::string as_file_name(const std::string& text) {
  constexpr size_t max_bytes = 100;
  std::string name = first_bytes(text, max_bytes);
  for (char& c : name) {
    if (c == '/' || static_cast<unsigned char>(c) < ' ' || c == 127) c = '_';
  }
  if (name.starts_with('.')) name[0] = '_';
  return name;
}

void write_text_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  const bool is_plain = type == fs::file_type::regular || type == fs::file_type::not_found;
  OutputFile file(is_plain ? pending_file(path) : path, path,
                  is_plain ? OutputMode::create : OutputMode::directly);
  file.write(text.data(), text.size());
  if (is_plain) {
    file.finish_as(path);
  } else {
    file.finish();
  }
}

fs::path program_folder() {
  std::error_code failure;
  return fs::read_symlink("/proc/self/exe", failure).parent_path();
}

fs::path library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&program_folder), &info) == 0) return {};
  std::error_code failure;
  return fs::canonical(info.dli_fname, failure).parent_path();
}

std::vector<fs::path> listed_folders(const char* variable) {
  std::vector<fs::path> folders;
  const char* list = std::getenv(variable);
  for (const std::string& folder : split(list == nullptr ? "" : list, ':')) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

}  // namespace tandem
