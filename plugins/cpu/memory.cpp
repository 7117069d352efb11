#include "plugins/cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugins/cpu/hardware.h"
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
  if (large) madvise(address, size, MADV_HUGEPAGE);  // a wish: without it, only slower
  std::memset(address, 0, size);
  return address;
}

void release(void* address) {
  std::free(address);
}

}  // namespace tandem::cpu
