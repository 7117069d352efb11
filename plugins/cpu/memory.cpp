#include "plugins/cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "plugins/cpu/hardware.h"
#include "plugins/cpu/team.h"
#include "plugins/sdk.h"

namespace tandem::cpu {

namespace {

std::string mebibytes(int64_t bytes) {
  constexpr int64_t mebibyte = int64_t{1} << 20;
  return sdk::text(bytes / mebibyte, ".", bytes % mebibyte * 10 / mebibyte, " MiB");
}

sdk::Refusal out_of_memory(int64_t bytes, int64_t available) {
  return {TANDEM_OUT_OF_MEMORY, sdk::text("out of memory: ", mebibytes(bytes), " asked for, ",
                                          mebibytes(available), " available")};
}

constexpr int64_t line = 64, huge_page = int64_t{2} << 20;

// AddressSanitizer detects errors only around malloc's memory.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool is_watched = true;
#else
constexpr bool is_watched = false;
#endif

// What release() needs to know. It is stored in the cache line before the memory.
struct Origin {
  void* start;
  size_t mapped_bytes;  // 0: the memory is malloc's
};
static_assert(sizeof(Origin) <= line);

std::byte* place(std::byte* memory, const Origin& origin) {
  std::memcpy(memory - line, &origin, sizeof origin);
  return memory;
}

// The kernel clears each new page on the thread that first touches it. On one thread this would
// take most of the start-up time.
void touch(std::byte* memory, int64_t bytes, int32_t threads) {
  const int64_t page = sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
  for_items(threads, pages, page / static_cast<int64_t>(sizeof(float)),
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) memory[i * page] = std::byte{0};
            });
}

// Maps pages from the kernel, because malloc may return used memory, and uses huge pages.
std::byte* map(int64_t bytes, int32_t threads) {
  const auto mapped = static_cast<size_t>(bytes + huge_page + line);
  void* const start =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw out_of_memory(bytes, memory_state().available);
  void* aligned = static_cast<std::byte*>(start) + line;
  size_t left = mapped - line;
  std::align(huge_page, static_cast<size_t>(bytes), aligned, left);
  // If these fail, memory is only slower or larger.
  madvise(start, mapped - left, MADV_NOHUGEPAGE);
  madvise(aligned, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  touch(static_cast<std::byte*>(aligned), bytes, threads);
  return place(static_cast<std::byte*>(aligned), {start, mapped});
}

std::byte* take_from_heap(int64_t bytes) {
  void* start = nullptr;
  const auto size = static_cast<size_t>(line + std::max(bytes, line));
  if (posix_memalign(&start, line, size) != 0) {
    throw out_of_memory(bytes, memory_state().available);
  }
  std::memset(start, 0, size);
  return place(static_cast<std::byte*>(start) + line, {start, 0});
}

}  // namespace

void* allocate(int64_t bytes, int32_t threads) {
  constexpr int64_t margin = 32 * huge_page;
  if (bytes < 0) throw sdk::invalid("memory of ", bytes, " bytes");
  if (bytes < huge_page) return take_from_heap(bytes);
  const int64_t available = memory_state().available;
  if (bytes > available - std::min(margin, available)) throw out_of_memory(bytes, available);
  return is_watched ? take_from_heap(bytes) : map(bytes, threads);
}

void release(void* address) {
  if (address == nullptr) return;
  Origin origin{};
  std::memcpy(&origin, static_cast<std::byte*>(address) - line, sizeof origin);
  if (origin.mapped_bytes == 0) {
    std::free(origin.start);
  } else {
    munmap(origin.start, origin.mapped_bytes);
  }
}

}  // namespace tandem::cpu
