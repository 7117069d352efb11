// What a thread runs of a plugin, so that a signal that ends the program is reported with it: one
// line on stderr, then the signal has its usual effect.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tandem {

// While it lives, the calling thread runs `pass` ("backward_data") of `owner` ("layer 'swish1'
// (acme.Swish)..."). Both texts are borrowed. Costs two atomic stores.
class RunningNote {
 public:
  RunningNote(const char* pass, const char* owner) noexcept;
  ~RunningNote();
  RunningNote(const RunningNote&) = delete;
  RunningNote& operator=(const RunningNote&) = delete;

 private:
  std::atomic<const RunningNote*>* place_;
  const RunningNote* outer_;
  const char* pass_;
  const char* owner_;
  friend struct CrashReport;
};

// Reports SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, unless a handler is set already. `program`
// begins the line: "tandem". It is borrowed.
void report_crashes(const char* program);

// What begins the line from now on, as "tandem: rank 1 of 4 (host b)"; and the step, once there is
// one.
void report_crashes_of(const std::string& who);
void report_crashes_in_step(int64_t step) noexcept;

}  // namespace tandem
