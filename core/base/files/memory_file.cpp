#include "core/base/files/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/files.h"

namespace tandem {

MemoryFile::MemoryFile() : descriptor_(::memfd_create("tandem", MFD_CLOEXEC)) {
  if (descriptor_ < 0) throw error("a file in memory cannot be made: {}", std::strerror(errno));
}

MemoryFile::MemoryFile(const void* data, size_t bytes) : MemoryFile() {
  write(data, bytes);
}

MemoryFile MemoryFile::picture(const uint8_t* pixels, int64_t height, int64_t width,
                               int64_t channels) {
  const std::string head = fmt::format("P{}\n{} {}\n255\n", channels == 1 ? 5 : 6, width, height);
  MemoryFile file(head.data(), head.size());
  file.write(pixels, size_t(height * width * channels));
  return file;
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

std::string MemoryFile::path() const {
  return fmt::format("/proc/self/fd/{}", descriptor_);
}

// The destructor of an object whose constructor delegated is called when this throws.
void MemoryFile::write(const void* data, size_t bytes) {
  if (write_bytes(descriptor_, data, bytes)) return;
  throw error("a file in memory cannot be written: {}", std::strerror(errno));
}

}  // namespace tandem
