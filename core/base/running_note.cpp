#include "core/base/running_note.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>

#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

namespace tandem {
namespace {

// All that a signal handler may touch. Threads of a kernel's own team have no note: for them all
// notes are reported.
constexpr size_t max_notes = 64;
std::atomic<const RunningNote*> running[max_notes];
thread_local const RunningNote* innermost = nullptr;
std::atomic<const char*> reporting_program = "";
std::atomic<int64_t> begun_step = 0;

const char* signal_text(int number) {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV: invalid memory access";
    case SIGBUS:
      return "SIGBUS: invalid memory access";
    case SIGFPE:
      return "SIGFPE: arithmetic error";
    case SIGILL:
      return "SIGILL: invalid instruction";
    default:
      return "SIGABRT: aborted";
  }
}

}  // namespace

// One line, collected in a buffer, since only write() is allowed in a signal handler.
struct CrashReport {
  void add(const char* text) {
    while (*text != '\0' && used < sizeof line - 1) line[used++] = *text++;
  }
  void add(const RunningNote& note) {
    add(note.pass_);
    add(" of ");
    add(note.owner_);
  }
  void add_step(const char* before, int64_t step) {
    char digits[24] = "";
    char* first = digits + sizeof digits - 1;
    if (step <= 0) return;
    for (; step > 0; step /= 10) *--first = static_cast<char>('0' + step % 10);
    add(before);
    add(first);
  }
  // The module whose code the thread runs, if it is no library of the system or of Tandem: a thread
  // that a plugin has made has no note.
  void add_module() {
    void* frames[64];
    Dl_info own{}, info{};
    static_cast<void>(::dladdr(reinterpret_cast<const void*>(&report_crashes), &own));
    const int count = ::backtrace(frames, 64);
    for (int i = 0; i < count; ++i) {
      if (::dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
      if (own.dli_fbase == info.dli_fbase) continue;
      const char* name = std::strrchr(info.dli_fname, '/');
      name = name == nullptr ? info.dli_fname : name + 1;
      bool is_of_system = std::strstr(name, ".so") == nullptr;
      for (const char* known : {"libc.", "libstdc++.", "libgcc_s.", "libpthread.", "ld-linux",
                                "libtandem", "libtbb", "libgomp.", "libm."}) {
        is_of_system = is_of_system || std::strncmp(name, known, std::strlen(known)) == 0;
      }
      if (is_of_system) continue;
      add("; in ");
      add(info.dli_fname);
      return;
    }
  }
  // What all threads run; false if that is nothing of a plugin.
  bool add_all(const char* first) {
    bool any = false;
    for (const auto& place : running) {
      const RunningNote* note = place.load();
      if (note == nullptr) continue;
      add(any ? ", or " : first);
      add(*note);
      add_step(" in step ", note->step_);
      any = true;
    }
    return any;
  }
  void write() {
    line[used++] = '\n';
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line, used);
  }

  static void report(int number) {
    CrashReport report;
    report.add(reporting_program.load());
    report.add(": ");
    if (innermost != nullptr) {
      report.add(*innermost);
      report.add(" crashed");
      report.add_step(" in step ", innermost->step_);
    } else {
      const bool any = report.add_all("while running ");
      report.add(any ? ", the program crashed" : "the program crashed");
      if (!any) report.add_step(" after the begin of step ", begun_step.load());
    }
    report.add(" (");
    report.add(signal_text(number));
    if (innermost == nullptr) report.add_module();
    report.add(")");
    report.write();
  }

  static const char* running_plugins() {
    static CrashReport report;
    report.used = 0;
    if (innermost != nullptr) {
      report.add("; in ");
      report.add(*innermost);
      report.add_step(" in step ", innermost->step_);
    } else {
      report.add_all("; while running ");
      report.add_module();
    }
    report.line[report.used] = '\0';
    return report.line;
  }

  static void report_exit(const RunningNote& note) {
    CrashReport report;
    report.add(reporting_program.load());
    report.add(": ");
    report.add(note);
    report.add_step(" in step ", note.step_);
    report.add(" called exit(): a plugin returns a status instead");
    report.write();
  }

  char line[4000];
  size_t used = 0;
};

namespace {

extern "C" void on_crash(int number) {
  CrashReport::report(number);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// A run that a plugin ends must not look like one that is complete.
extern "C" void on_exit_of_process(int code, void*) {
  if (innermost == nullptr) return;
  CrashReport::report_exit(*innermost);
  ::_exit(code == 0 ? 1 : code);
}

// Where the handler runs if the thread's own stack is full; of a thread that has none yet.
class SignalStack {
 public:
  SignalStack() {
    stack_t now{};
    if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::make_unique<char[]>(bytes);
    const stack_t own{memory_.get(), 0, bytes};
    ::sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    const stack_t none{nullptr, SS_DISABLE, 0};
    if (memory_ != nullptr) ::sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr size_t bytes = 64 << 10;
  std::unique_ptr<char[]> memory_;
};

}  // namespace

void give_signal_stack() {
  static thread_local const SignalStack stack;
}

RunningNote::RunningNote(const char* pass, const char* owner, int64_t step) noexcept
    : place_(nullptr), outer_(innermost), pass_(pass), owner_(owner), step_(step) {
  give_signal_stack();
  innermost = this;
  if (outer_ != nullptr) return;
  for (auto& place : running) {
    const RunningNote* none = nullptr;
    if (!place.compare_exchange_strong(none, this)) continue;
    place_ = &place;
    return;
  }
}

RunningNote::~RunningNote() {
  if (place_ != nullptr) place_->store(nullptr);
  innermost = outer_;
}

const char* running_text() noexcept {
  return CrashReport::running_plugins();
}

void report_crashes_of(const std::string& who) {
  static char text[512] = "";
  text[who.copy(text, sizeof text - 1)] = '\0';
  reporting_program = text;
}

void report_crashes_after(int64_t step) noexcept {
  begun_step = step;
}

void report_crashes(const char* program) {
  reporting_program = program;
  void* frame = nullptr;
  static_cast<void>(::backtrace(&frame, 1));  // loads what it needs, which a handler must not
  static_cast<void>(::on_exit(&on_exit_of_process, nullptr));
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = &on_crash;
    action.sa_flags = SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace tandem
