#include "core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"

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

bool is_regular(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// Returns 0 or the reason.
int make_missing_folders(const fs::path& path) {
  std::error_code code;
  if (path.empty() || fs::is_directory(path, code)) return 0;
  if (const fs::path parent = path.parent_path(); parent != path) {
    if (const int reason = make_missing_folders(parent); reason != 0) return reason;
  }
  if (::mkdir(path.c_str(), 0755) == 0) return 0;
  const int reason = errno;
  if (fs::is_directory(path, code)) return 0;  // made meanwhile, or "a/" after "a"
  return reason == EEXIST ? ENOTDIR : reason;
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

void InputFile::fail(int reason) const {
  throw error("{} '{}' cannot be read: {}", what_, path_, RegularFile::text_of(reason));
}

std::string read_text_file(const fs::path& path, const std::string& what, uint64_t most_bytes) {
  const InputFile file(path, what);
  if (file.size() > most_bytes) {
    throw error("{} '{}' has {} bytes, too many: at most {} are read", what, path.string(),
                file.size(), most_bytes);
  }
  std::string text(file.size(), '\0');
  text.resize(file.read(0, text.data(), text.size()));
  return text;
}

OutputFile::OutputFile(const fs::path& path, const fs::path& shown, OutputMode mode)
    : path_(path), shown_(shown.empty() ? path : shown), mode_(mode) {
  if (mode == OutputMode::create) {
    std::error_code ignored;
    const fs::file_type type = fs::symlink_status(path, ignored).type();
    if (type == fs::file_type::regular || type == fs::file_type::symlink) {
      ::unlink(path.c_str());
    } else if (type != fs::file_type::not_found) {
      mode_ = OutputMode::directly;
    }
  }
  switch (mode_) {
    case OutputMode::create:
      descriptor_ = open_for_writing(path, O_CREAT | O_EXCL | O_NOFOLLOW);
      break;
    case OutputMode::append:
      descriptor_ = open_for_writing(path, O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
      break;
    case OutputMode::directly:
      descriptor_ = open_device(path);
  }
  if (descriptor_ < 0)
    fail(mode_ == OutputMode::create ? "cannot be created" : "cannot be written");
  if (mode_ == OutputMode::append && !is_regular(descriptor_)) {
    ::close(descriptor_);
    throw error("file '{}' cannot be written: it is not a regular file", shown_.string());
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (mode_ == OutputMode::create) ::unlink(path_.c_str());
}

void OutputFile::write(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot be written");
    at += written;
    bytes -= static_cast<size_t>(written);
  }
}

void OutputFile::finish() {
  if (mode_ != OutputMode::directly && ::fsync(descriptor_) != 0) fail("cannot be written");
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail("cannot be written");
}

void OutputFile::fail(const char* what) const {
  const int reason = errno;
  throw error("file '{}' {}: {}", shown_.string(), what, std::strerror(reason));
}

fs::path pending_file(const fs::path& path) {
  return path.string() + ".new";
}

void replace_file(const fs::path& source, const fs::path& target) {
  std::error_code code;
  fs::rename(source, target, code);
  if (code) throw error("file '{}' cannot be replaced: {}", target.string(), code.message());
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

bool link_file(const fs::path& source, const fs::path& target) {
  std::error_code code;
  fs::remove(target, code);
  fs::create_hard_link(source, target, code);
  return !code;
}

void make_folders(const fs::path& path, const std::string& what) {
  if (const int reason = make_missing_folders(path); reason != 0) {
    throw error("{} '{}' cannot be made: {}", what, path.string(), std::strerror(reason));
  }
}

void write_text_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  const bool is_plain = type == fs::file_type::regular || type == fs::file_type::not_found;
  OutputFile file(is_plain ? pending_file(path) : path, path,
                  is_plain ? OutputMode::create : OutputMode::directly);
  file.write(text.data(), text.size());
  file.finish();
  if (is_plain) replace_file(pending_file(path), path);
}

}  // namespace tandem
