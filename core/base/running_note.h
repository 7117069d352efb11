// What a thread runs of a plugin, so that a signal that ends the program is reported with it: one
// line on stderr, then the signal has its usual effect.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tandem {

// While it lives, the calling thread runs `pass` ("backward_data") of `owner` ("layer 'swish1'
// (acme.Swish)..."), in `step`, which counts from 1; 0: in none. Both texts are borrowed. Costs two
// atomic stores; the first of a thread gives it a stack for signal handlers.
class RunningNote {
 public:
  RunningNote(const char* pass, const char* owner, int64_t step = 0) noexcept;
  ~RunningNote();
  RunningNote(const RunningNote&) = delete;
  RunningNote& operator=(const RunningNote&) = delete;

 private:
  std::atomic<const RunningNote*>* place_;
  const RunningNote* outer_;
  const char* pass_;
  const char* owner_;
  int64_t step_;
  friend struct CrashReport;
};

// Gives the calling thread a stack for signal handlers, where it has none: generated code may use
// its stack pointer for other things, and a handler on the thread's own stack would write anywhere.
void give_signal_stack();

// Reports SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, unless a handler is set already. `program`
// begins the line: "tandem". It is borrowed.
void report_crashes(const char* program);

// Of a program that ends otherwise: what runs of plugins, or the module whose code this thread
// runs, as "; while running forward of ..."; "" if it is none. Valid until the next call.
[[nodiscard]] const char* running_text() noexcept;

// What begins the line from now on, as "tandem: rank 1 of 4 (host b)".
void report_crashes_of(const std::string& who);
// A crash outside of what notes name came after this step had begun; it counts from 1.
void report_crashes_after(int64_t step) noexcept;

}  // namespace tandem
