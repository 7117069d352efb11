#include "core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace tandem {

namespace fs = std::filesystem;

OutputFile::OutputFile(const fs::path& path, const fs::path& shown)
    : path_(path), shown_(shown.empty() ? path : shown) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("cannot be created");
  struct stat status {};
  is_plain_ = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (is_plain_) ::unlink(path_.c_str());
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
  if (is_plain_ && ::fsync(descriptor_) != 0) fail("cannot be written");
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

void write_text_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  const bool plain = type == fs::file_type::regular || type == fs::file_type::not_found;
  OutputFile file(plain ? pending_file(path) : path, path);
  file.write(text.data(), text.size());
  file.finish();
  if (plain) replace_file(pending_file(path), path);
}

}  // namespace tandem
