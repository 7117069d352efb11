// A loop over independent items on several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace tandem {

// The processors that this process may use (core/base/processors.h), at least 1.
[[nodiscard]] int processor_count();

// Calls work(item, thread) once for every item from 0 to count - 1, in any order. The calling
// thread is thread 0 of `threads` (at least 1). The first exception ends the loop early and is
// thrown again when all threads are done.
void parallel_for(int64_t count, int threads,
                  const std::function<void(int64_t item, int thread)>& work);

}  // namespace tandem
