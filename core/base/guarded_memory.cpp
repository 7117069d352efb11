#include "core/base/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/error.h"

namespace tandem {
namespace {

// A tiny number, and a large one beside data of large ones: who reads beyond the data gets other
// values with another fill.
unsigned char canary_of(unsigned char fill) {
  return fill == GuardedMemory::finite ? 0x7B : 0xA5;
}

// Before the canary in front of the data.
struct Front {
  int64_t bytes;
  unsigned char canary;
};

size_t multiple_of(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

Front* front_of(const void* data) {
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(data));
  return reinterpret_cast<Front*>(bytes - GuardedMemory::guard) - 1;
}

// Pages between two without access. Those of small memory are kept for later use: a check of a
// layer makes thousands of passes, and mapping takes longer than such a pass. They are filled with
// NaN when they are given back, and wait for some time, so that who kept a pointer reads a NaN.
class GuardedPages {
 public:
  // Of so many bytes that can be accessed, a multiple of a page. nullptr: there are none.
  unsigned char* take(size_t inside) {
    {
      const std::lock_guard lock(mutex_);
      std::deque<unsigned char*>& kept = kept_[inside];
      if (kept.size() > waiting) {
        unsigned char* pages = kept.front();
        kept.pop_front();
        kept_bytes_ -= inside;
        return pages;
      }
    }
    void* pages = mmap(nullptr, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    if (mprotect(static_cast<unsigned char*>(pages) + page, inside, PROT_READ | PROT_WRITE) == 0) {
      return static_cast<unsigned char*>(pages);
    }
    munmap(pages, inside + 2 * page);
    return nullptr;
  }
  void give_back(unsigned char* pages, size_t inside) {
    if (inside <= max_kept) {
      std::memset(pages + page, GuardedMemory::nan, inside);
      const std::lock_guard lock(mutex_);
      if (kept_bytes_ + inside <= max_kept_together) {
        kept_[inside].push_back(pages);
        kept_bytes_ += inside;
        return;
      }
    }
    munmap(pages, inside + 2 * page);
  }

  const size_t page = size_t(sysconf(_SC_PAGESIZE));

 private:
  static constexpr size_t max_kept = size_t{1} << 18, max_kept_together = size_t{64} << 20,
                          waiting = 32;
  std::mutex mutex_;
  std::map<size_t, std::deque<unsigned char*>> kept_;
  size_t kept_bytes_ = 0;
};

// Never destroyed: memory may be given back while the program ends.
GuardedPages& guarded_pages() {
  static auto* pages = new GuardedPages;
  return *pages;
}

}  // namespace

// The data as close to the last page without access as its alignment and its canary allow. What is
// in front of it holds the canary, too, and nothing of earlier uses.
GuardedMemory::GuardedMemory(int64_t bytes, unsigned char fill) : bytes_(size_t(bytes)) {
  GuardedPages& all = guarded_pages();
  const size_t after = multiple_of(bytes_ + guard, guard);
  inside_ = multiple_of(after + 2 * guard, all.page);
  pages_ = all.take(inside_);
  if (pages_ == nullptr) throw error("there is no memory for {} bytes between guards", bytes);
  unsigned char* first = pages_ + all.page;
  const unsigned char canary = canary_of(fill);
  data_ = first + inside_ - after;
  std::memset(first, canary, size_t(data_ - first));
  std::memset(data_, fill, bytes_);
  std::memset(data_ + bytes_, canary, after - bytes_);
  *front_of(data_) = {bytes, canary};
}

GuardedMemory::GuardedMemory(const void* values, int64_t bytes, unsigned char fill)
    : GuardedMemory(bytes, fill) {
  if (bytes > 0) std::memcpy(data_, values, bytes_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : bytes_(other.bytes_),
      inside_(other.inside_),
      pages_(std::exchange(other.pages_, nullptr)),
      data_(std::exchange(other.data_, nullptr)) {}

GuardedMemory::~GuardedMemory() {
  if (pages_ != nullptr) guarded_pages().give_back(pages_, inside_);
}

std::string GuardedMemory::damage_of(const void* data) {
  const auto* first = static_cast<const unsigned char*>(data);
  const unsigned char* end = first + bytes_of(data);
  const unsigned char canary = front_of(data)->canary;
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
  return front_of(data)->bytes;
}

}  // namespace tandem
