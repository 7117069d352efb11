#include "datasets/picture/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "plugins/sdk.h"

namespace tandem::picture {

DataFile::DataFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) throw sdk::invalid(path, ": cannot be read: ", std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw sdk::invalid(path, ": is not a regular file");
  }
  size_ = status.st_size;
}

DataFile::DataFile(DataFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

DataFile::~DataFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool DataFile::read(int64_t offset, unsigned char* target, size_t count) const {
  for (size_t done = 0; done < count;) {
    const ssize_t got = ::pread(descriptor_, target + done, count - done,
                                static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace tandem::picture
