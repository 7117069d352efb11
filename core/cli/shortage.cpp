// What the program does when memory or threads run short. Libraries of kernels and of
// threads, the dynamic loader and static initializers do not survive a small allocation that fails:
// they crash, or compute by another kernel. So this program's malloc ends the program there, with
// one line and exit code 1. Files are then as after a kill: whole. Large requests fail as usual,
// since whoever makes them checks them and can say what they were for. Other programs on the
// library, and builds with sanitizers, keep the usual functions.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

#include "core/base/running_note.h"

namespace {

constexpr size_t large = size_t{4} << 20;  // bytes; those of generated code are less

// A line on stderr, made without an allocation.
class LastLine {
 public:
  LastLine& operator<<(const char* text) {
    const size_t length = std::min(std::strlen(text), sizeof(text_) - 1 - length_);
    std::memcpy(text_ + length_, text, length);
    length_ += length;
    return *this;
  }
  LastLine& operator<<(size_t number) {
    char digits[24] = "";
    std::to_chars(digits, digits + sizeof(digits) - 1, number);
    return *this << digits;
  }
  // Of several threads that end it at once the first one writes.
  [[noreturn]] void end_program() {
    static std::atomic_flag is_ending;
    while (is_ending.test_and_set()) ::pause();
    text_[length_++] = '\n';
    // There is nobody to tell that the message was lost.
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text_, length_);
    _exit(1);
  }

 private:
  char text_[4096];
  size_t length_ = 0;
};

// The function of one name of the library that comes next: glibc, or a preloaded allocator.
template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  Function* find() {
    auto* const found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
    function_.store(found, std::memory_order_relaxed);
    return found;
  }
  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    Function* const function = function_.load(std::memory_order_relaxed);
    return (function == nullptr ? find() : function)(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_ = nullptr;
};

constinit Next<void*(size_t)> next_malloc("malloc");
constinit Next<void*(size_t, size_t)> next_calloc("calloc");
constinit Next<void*(void*, size_t)> next_realloc("realloc");
constinit Next<void*(size_t, size_t)> next_aligned_alloc("aligned_alloc");
constinit Next<int(void**, size_t, size_t)> next_posix_memalign("posix_memalign");
constinit Next<void*(void*, size_t, int, int, int, off_t)> next_mmap("mmap");
constinit Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> next_pthread_create(
    "pthread_create");

void* checked(void* memory, size_t bytes) {
  if (memory == nullptr && bytes != 0 && bytes < large) {
    (LastLine() << "tandem: out of memory: " << bytes << " bytes cannot be allocated")
        .end_program();
  }
  return memory;
}

// An exception that nothing catches: outside main's try, or in a thread.
[[noreturn]] void on_terminate() {
  LastLine line;
  line << "tandem: ";
  try {
    if (std::current_exception() == nullptr) std::abort();
    throw;
  } catch (const std::bad_alloc&) {
    line << "out of memory";
  } catch (const std::exception& failure) {
    line << failure.what();
  } catch (...) {
    line << "an unknown exception";
  }
  (line << tandem::running_text()).end_program();
}

// All functions are found here: dlerror() allocates, and a dlsym() inside it frees the message that
// it returns.
void prepare() {
  const auto find_all = [](auto&... next) { (next.find(), ...); };
  find_all(next_malloc, next_calloc, next_realloc, next_aligned_alloc, next_posix_memalign,
           next_mmap, next_pthread_create);
  std::set_terminate(&on_terminate);
}

// Before the initializers of any library.
[[gnu::section(".preinit_array"), gnu::used]] void (*const first_initializer)() = &prepare;

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  return checked(next_malloc(bytes), bytes);
}

void* calloc(size_t count, size_t bytes) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) all = large;
  return checked(next_calloc(count, bytes), all);
}

void* realloc(void* memory, size_t bytes) {
  return checked(next_realloc(memory, bytes), bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  return checked(next_aligned_alloc(alignment, bytes), bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  const int status = next_posix_memalign(memory, alignment, bytes);
  if (status == ENOMEM) checked(nullptr, bytes);
  return status;
}

// A library maps memory for the code that it generates, and writes to it unchecked.
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  void* const memory = next_mmap(address, bytes, protection, flags, file, offset);
  const bool is_plain = file < 0 && (flags & MAP_HUGETLB) == 0;
  if (memory == MAP_FAILED && errno == ENOMEM && is_plain) checked(nullptr, bytes);
  return memory;
}

// Some libraries end the program where a thread cannot be started, and oneTBB aborts it.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  const int status = next_pthread_create(thread, attributes, run, argument);
  if (status == EAGAIN) {
    (LastLine() << "tandem: a thread cannot be started: too little memory, or too many threads "
                   "(ulimit -v, ulimit -u, or the limits of a container)")
        .end_program();
  }
  return status;
}

}  // extern "C"
