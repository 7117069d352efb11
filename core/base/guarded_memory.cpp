#include "core/base/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace tandem {
namespace {

constexpr unsigned char canary = 0xA5;

size_t multiple_of(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Before the canary in front of the data.
int64_t* size_in_front(const void* data) {
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(data));
  return reinterpret_cast<int64_t*>(bytes - GuardedMemory::guard) - 1;
}

}  // namespace

// One page without access, the data as close to the last page without access as its alignment and
// its canary allow.
GuardedMemory::GuardedMemory(int64_t bytes, unsigned char fill) : bytes_(size_t(bytes)) {
  const auto page = size_t(sysconf(_SC_PAGESIZE));
  const size_t after = multiple_of(bytes_ + guard, guard);
  const size_t inside = multiple_of(after + 2 * guard, page);
  mapped_ = inside + 2 * page;
  void* pages = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw error("there is no memory for {} bytes between guards", bytes);
  pages_ = static_cast<unsigned char*>(pages);
  if (mprotect(pages_ + page, inside, PROT_READ | PROT_WRITE) != 0) {
    munmap(pages_, mapped_);
    throw error("there is no memory for {} bytes between guards", bytes);
  }
  data_ = pages_ + page + inside - after;
  std::memset(data_ - guard, canary, guard);
  std::memset(data_, fill, bytes_);
  std::memset(data_ + bytes_, canary, after - bytes_);
  *size_in_front(data_) = bytes;
}

GuardedMemory::GuardedMemory(const void* values, int64_t bytes) : GuardedMemory(bytes) {
  if (bytes > 0) std::memcpy(data_, values, bytes_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : bytes_(other.bytes_),
      mapped_(other.mapped_),
      pages_(std::exchange(other.pages_, nullptr)),
      data_(std::exchange(other.data_, nullptr)) {}

GuardedMemory::~GuardedMemory() {
  if (pages_ != nullptr) munmap(pages_, mapped_);
}

std::string GuardedMemory::damage_of(const void* data) {
  const auto* first = static_cast<const unsigned char*>(data);
  const unsigned char* end = first + bytes_of(data);
  for (size_t i = 1; i <= guard; ++i) {
    if (first[-static_cast<ptrdiff_t>(i)] == canary) continue;
    return fmt::format("byte {} in front of it was written", i);
  }
  for (size_t i = 0; i < guard; ++i) {
    if (end[i] == canary) continue;
    return fmt::format("byte {} after its end was written", i);
  }
  return "";
}

int64_t GuardedMemory::bytes_of(const void* data) {
  return *size_in_front(data);
}

}  // namespace tandem
