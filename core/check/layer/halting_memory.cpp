#include "core/check/layer/halting_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/base/error.h"

namespace tandem::checker {

// What the handler may touch.
struct HaltingSignal {
  static std::atomic<HaltingMemory*> active;
  static struct sigaction before;  // of SIGSEGV

  // Another fault has the usual effect when its instruction runs again.
  static void handle(int number, siginfo_t* info, void*) {
    const int kept = errno;
    HaltingMemory* memory = active.load();
    const auto* at = static_cast<const unsigned char*>(info->si_addr);
    const bool is_in = memory != nullptr && at >= memory->pages_ + memory->before_ &&
                       at < memory->pages_ + memory->before_ + memory->after_;
    if (is_in) {
      memory->halt();
    } else {
      std::signal(number, SIG_DFL);
    }
    errno = kept;
  }
  static void take(HaltingMemory* memory) {
    active = memory;
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, &before);
  }
  // A handler that a pass has set meanwhile stays.
  static void give_back() {
    struct sigaction now {};
    ::sigaction(SIGSEGV, nullptr, &now);
    const bool is_own = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &handle;
    if (is_own) ::sigaction(SIGSEGV, &before, nullptr);
    active = nullptr;
  }
};
std::atomic<HaltingMemory*> HaltingSignal::active = nullptr;
struct sigaction HaltingSignal::before {};

namespace {

void pause_shortly() {
  const timespec time{0, 20'000};
  ::nanosleep(&time, nullptr);
}

}  // namespace

bool HaltingMemory::is_possible() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  // Valgrind does not keep all registers for an instruction that runs again.
  static const char* const preloaded = std::getenv("LD_PRELOAD");
  const bool has_tool = preloaded != nullptr && (std::strstr(preloaded, "vgpreload") != nullptr ||
                                                 std::strstr(preloaded, "asan") != nullptr);
  struct sigaction now {};
  const bool is_known = ::sigaction(SIGSEGV, nullptr, &now) == 0;
  return !has_tool && is_known && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
#endif
}

HaltingMemory::HaltingMemory(void* memory, int64_t bytes, std::function<void()> meanwhile)
    : memory_(memory), bytes_(size_t(bytes)) {
  constexpr size_t alignment = 64;
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  const size_t first = bytes_ / 2 / alignment * alignment;
  const auto pages_for = [&](size_t count) { return (count + page - 1) / page * page; };
  before_ = pages_for(first);
  after_ = pages_for(bytes_ - first);
  void* pages =
      ::mmap(nullptr, before_ + after_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw error("there is no memory for {} bytes", bytes);
  pages_ = static_cast<unsigned char*>(pages);
  data_ = pages_ + before_ - first;
  std::memcpy(data_, memory_, bytes_);
  ::mprotect(pages_ + before_, after_, PROT_NONE);
  HaltingSignal::take(this);
  try {
    other_ = std::jthread([this, run = std::move(meanwhile)] {
      while (!is_touched_ && !is_over_) pause_shortly();
      if (is_touched_) run();
      is_done_ = true;
    });
  } catch (...) {
    HaltingSignal::give_back();
    ::munmap(pages_, before_ + after_);
    throw error("there is no thread beside a pass");
  }
}

HaltingMemory::~HaltingMemory() {
  is_over_ = true;
  other_.join();
  HaltingSignal::give_back();
  open();
  std::memcpy(memory_, data_, bytes_);
  ::munmap(pages_, before_ + after_);
}

void HaltingMemory::halt() noexcept {
  constexpr int64_t patience = 200;  // milliseconds
  is_touched_ = true;
  timespec began{}, now{};
  ::clock_gettime(CLOCK_MONOTONIC, &began);
  for (int64_t past = 0; past < patience && !is_done_;) {
    pause_shortly();
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    past = (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1'000'000;
  }
  open();
}

void HaltingMemory::open() const noexcept {
  ::mprotect(pages_ + before_, after_, PROT_READ | PROT_WRITE);
}

}  // namespace tandem::checker
