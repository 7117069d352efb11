// Memory whose second half stops the threads that touch it until other work is done, so that two
// passes of kernels overlap in every run, and not only by chance.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace tandem::checker {

// 64-byte aligned; of small memory the whole stops threads. One at a time in a process. Threads
// that touch it have a stack for handlers (give_signal_stack()). A system call that gets it fails.
class HaltingMemory {
 public:
  // False under tools that handle signals or memory themselves, and where SIGSEGV has a handler.
  static bool is_possible();

  // A copy of `bytes` bytes of `memory`. Once a thread touches the second half, `meanwhile` runs in
  // a thread of its own; who touches it goes on when that is done, or after some time, as
  // `meanwhile` may wait for what that thread holds. `memory` outlives it.
  HaltingMemory(void* memory, int64_t bytes, std::function<void()> meanwhile);
  // Copies back.
  ~HaltingMemory();
  HaltingMemory(const HaltingMemory&) = delete;
  HaltingMemory& operator=(const HaltingMemory&) = delete;

  [[nodiscard]] void* data() const { return data_; }

 private:
  friend struct HaltingSignal;
  void halt() noexcept;  // in the handler
  void open() const noexcept;

  void* memory_;
  size_t bytes_, before_ = 0, after_ = 0;  // of the pages in front of the second half, and of it
  unsigned char *pages_ = nullptr, *data_ = nullptr;
  std::atomic<bool> is_touched_ = false, is_over_ = false, is_done_ = false;
  std::jthread other_;
};

}  // namespace tandem::checker
