#include "core/device/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

std::string folder() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && *given != '\0' ? given : "/var/tmp";
}

[[noreturn]] void fail(int64_t bytes, int reason) {
  throw error(
      "extended memory of {} in a file in folder '{}': {}; set TMPDIR to a writable folder "
      "with enough space",
      human_bytes(bytes), folder(), std::strerror(reason));
}

// No other process can open it, and it is deleted when it is closed and unmapped.
int open_nameless(int64_t bytes) {
  const std::string pattern = folder() + "/tandem-XXXXXX";
  std::vector<char> name(pattern.begin(), pattern.end());
  name.push_back('\0');
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) fail(bytes, errno);
  unlink(name.data());
  return file;
}

}  // namespace

MappedFile::MappedFile(int64_t bytes) : bytes_(bytes) {
  const int file = open_nameless(bytes);
  int reason = 0;
  do {
    reason = posix_fallocate(file, 0, bytes);
  } while (reason == EINTR);  // a signal, as from a timer, is no lack of space
  void* address = MAP_FAILED;
  if (reason == 0) {
    address = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (address == MAP_FAILED) reason = errno;
  }
  close(file);
  if (reason != 0) fail(bytes, reason);
  address_ = static_cast<std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (address_ != nullptr) munmap(address_, size_t(bytes_));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace tandem
