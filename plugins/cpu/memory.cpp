#include "plugins/cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "plugins/cpu/hardware.h"
#include "plugins/cpu/team.h"
#include "plugins/sdk.h"

namespace tandem::cpu {

namespace {

std::string mebibytes(int64_t bytes) {
  constexpr int64_t mebibyte = 1024 * 1024;
  return sdk::text(bytes / mebibyte, ".", bytes % mebibyte * 10 / mebibyte, " MiB");
}

sdk::Refusal out_of_memory(int64_t bytes, int64_t available) {
  return {TANDEM_OUT_OF_MEMORY, sdk::text("out of memory: ", mebibytes(bytes), " asked for, ",
                                          mebibytes(available), " available")};
}

// Whole pages are given back and come anew, as zeros, so one write to each is enough. The kernel
// clears a page on the thread that touches it first: on one thread that is most of a start.
void clear_and_touch(std::byte* address, size_t size) {
  constexpr size_t page = 4096;
  const size_t whole = size / page * page;
  const bool is_new = madvise(address, whole, MADV_DONTNEED) == 0;
  for_items(core_count(), static_cast<int64_t>(whole / page), page / sizeof(float),
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                std::memset(address + static_cast<size_t>(i) * page, 0, is_new ? 1 : page);
              }
            });
  std::memset(address + whole, 0, size - whole);
}

}  // namespace

void* allocate(int64_t bytes) {
  constexpr int64_t line = 64, huge_page = 2 * 1024 * 1024, margin = 32 * huge_page;
  if (bytes < 0) throw sdk::invalid("memory of ", bytes, " bytes");
  const bool large = bytes >= huge_page;
  if (large) {
    const int64_t available = memory_state().available;
    if (bytes > available - std::min(margin, available)) throw out_of_memory(bytes, available);
  }
  void* address = nullptr;
  const auto alignment = static_cast<size_t>(large ? huge_page : line);
  const auto size = static_cast<size_t>(std::max(bytes, line));
  if (posix_memalign(&address, alignment, size) != 0) {
    throw out_of_memory(bytes, memory_state().available);
  }
  if (!large) {
    std::memset(address, 0, size);
    return address;
  }
  madvise(address, size, MADV_HUGEPAGE);  // a wish: without it, only slower
  clear_and_touch(static_cast<std::byte*>(address), size);
  return address;
}

void release(void* address) {
  std::free(address);
}

}  // namespace tandem::cpu
