#include "datasets/image_folder/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tandem::image_folder {

namespace fs = std::filesystem;

NewFile::NewFile(const std::string& path) : path_(path) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path, ignored))) {
    throw sdk::invalid("'", path, "' exists: choose another name, or remove it");
  }
  open_without_name();
  if (descriptor_ < 0) open_as_part();
  if (descriptor_ < 0) throw broken();
}

void NewFile::open_without_name() {
  const fs::path folder = fs::path(path_).parent_path();
  descriptor_ =
      ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
  // Its name is made through /proc, which may be missing.
  if (descriptor_ >= 0 && ::access(name_in_proc().c_str(), F_OK) != 0) {
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

void NewFile::open_as_part() {
  part_ = path_ + ".part-" + std::to_string(::getpid());
  // An old process of this number may have left one.
  ::unlink(part_.c_str());
  descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!finished_ && !part_.empty()) ::unlink(part_.c_str());
}

void NewFile::append(const std::string& bytes) {
  write_at(size_, bytes);
  size_ += bytes.size();
}

void NewFile::write_at(uint64_t offset, const std::string& bytes) const {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                     static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw broken();
    done += static_cast<size_t>(written);
  }
}

void NewFile::sync() const {
  while (::fsync(descriptor_) != 0) {
    if (errno != EINTR) throw broken();
  }
}

void NewFile::finish(const std::string& beginning) {
  sync();
  write_at(0, beginning);
  sync();
  // Unlike rename, link never replaces a file that was created meanwhile.
  const std::string from = part_.empty() ? name_in_proc() : part_;
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(),
               part_.empty() ? AT_SYMLINK_FOLLOW : 0) != 0) {
    throw broken();
  }
  if (!part_.empty()) ::unlink(part_.c_str());
  finished_ = true;
}

std::string NewFile::name_in_proc() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

sdk::Refusal NewFile::broken() const {
  return sdk::failed("'", path_, "' cannot be written: ", std::strerror(errno));
}

}  // namespace tandem::image_folder
