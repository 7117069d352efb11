// A file opened for reading, the one way in which core and plugins open the files of a user. Only
// regular files, and without waiting: a pipe may have no writer and no end. A read that fails is
// tried again, and a disk that fails is distinguished from a file that is missing or too short.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace tandem {

class RegularFile {
 public:
  // Afterwards error() says whether it is open.
  explicit RegularFile(const std::string& path) {
    constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const auto opened = [&] { return descriptor_ = ::open(path.c_str(), flags); };
    if (repeated(opened) < 0) {
      error_ = errno;
      return;
    }
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) {
      error_ = errno;
    } else if (!S_ISREG(status.st_mode)) {
      error_ = S_ISDIR(status.st_mode) ? EISDIR : not_regular;
    }
    size_ = status.st_size;
  }
  RegularFile(RegularFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        error_(other.error_),
        size_(other.size_) {}
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  // 0, a number of errno, or not_regular.
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] int64_t size() const { return size_; }  // when it was opened
  [[nodiscard]] int descriptor() const { return descriptor_; }

  // Thread-safe. Returns 0 and the number of bytes read, fewer than `count` only at the end of the
  // file; or the number of errno.
  [[nodiscard]] int read(int64_t offset, void* target, size_t count, size_t* done) const {
    auto* at = static_cast<unsigned char*>(target);
    for (*done = 0; *done < count;) {
      const ssize_t got = repeated([&] {
        return ::pread(descriptor_, at + *done, count - *done,
                       static_cast<off_t>(offset + static_cast<int64_t>(*done)));
      });
      if (got < 0) return errno;
      if (got == 0) break;
      *done += static_cast<size_t>(got);
    }
    return 0;
  }

  // Of a large file that is nearly all a hole, which reads as zeros: how many of its bytes are on
  // the disk. -1 of all others, and where the file system does not tell. What is kept of the
  // records in such a file would need far more memory than the file has bytes on the disk.
  [[nodiscard]] int64_t stored_of_hole() const {
    constexpr int64_t small = int64_t{1} << 20, min_part = 16;
    if (size_ <= small) return -1;
    int64_t stored = 0;
    for (off_t at = 0; at < size_;) {
      const off_t begin = ::lseek(descriptor_, at, SEEK_DATA);
      if (begin < 0) return errno == ENXIO ? stored : -1;
      at = ::lseek(descriptor_, begin, SEEK_HOLE);
      if (at < 0) return -1;
      stored += at - begin;
      if (stored >= size_ / min_part) return -1;
    }
    return stored;
  }
  [[nodiscard]] static std::string text_of_hole(int64_t bytes, int64_t stored) {
    return "has " + std::to_string(bytes) + " bytes, of which " + std::to_string(stored) +
           " are on the disk; the rest is a hole, as a broken copy or 'truncate' leaves it: copy "
           "the "
           "whole file again";
  }

  static constexpr int not_regular = -1;

  [[nodiscard]] static std::string text_of(int error) {
    if (error == EISDIR) return "it is a folder";
    return error == not_regular ? "it is not a regular file" : std::strerror(error);
  }
  // Whether the disk or the system failed: another try, or another machine, may read the file. All
  // reasons but those that lie in the path, the file or who reads it.
  [[nodiscard]] static bool is_failure(int error) {
    switch (error) {
      case 0:
      case not_regular:
      case EACCES:
      case EISDIR:
      case ELOOP:
      case ENAMETOOLONG:
      case ENODEV:
      case ENOENT:
      case ENOTDIR:
      case ENXIO:
      case EOVERFLOW:
      case EPERM:
        return false;
      default:
        return true;
    }
  }
  // The result of a system call, which is tried again where the disk fails.
  template <class Call>
  static ssize_t repeated(const Call& call) {
    constexpr int max_tries = 4;
    auto pause = std::chrono::milliseconds(10);
    for (int tries = 1;; pause *= 4) {
      const ssize_t result = call();
      if (result >= 0 || (errno != EINTR && !is_failure(errno))) return result;
      if (errno == EINTR) continue;
      if (tries++ == max_tries) return result;
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  int descriptor_ = -1, error_ = 0;
  int64_t size_ = 0;
};

}  // namespace tandem
