#include "core/plugin/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/version.h"
#include "plugins/fnv.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr unsigned max_seconds = 30;
constexpr int is_loaded = 77;  // the child's exit code: what no exit() of a module would give

// "": none can be told.
fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "tandem/modules";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache/tandem/modules" : fs::path();
}

std::string name_of(const fs::path& module, const std::string& what) {
  const InputFile file(module, "module");
  uint64_t hash = fnv::hash_of(version() + what);
  std::array<unsigned char, 1 << 16> part{};
  for (uint64_t offset = 0;;) {
    const size_t bytes = file.read(offset, part.data(), part.size());
    for (size_t i = 0; i < bytes; ++i) hash = fnv::add(hash, part[i]);
    offset += bytes;
    if (bytes < part.size()) return fmt::format("{:016x}-{}", hash, offset);
  }
}

// Whoever cannot remember tries again.
void remember(const fs::path& folder, const std::string& name) {
  constexpr size_t max_names = 1000;
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const std::vector<fs::path> names = entries_of(folder, ignored);
  for (size_t i = 0; names.size() >= max_names && i < names.size(); ++i) {
    fs::remove(names[i], ignored);
  }
  const int file =
      ::open((folder / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file >= 0) ::close(file);
}

[[noreturn]] void load_in_child(const std::function<void()>& load) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGTERM, SIGINT}) {
    std::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // What the module prints, it prints again when the program loads it.
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  ::alarm(max_seconds);
  try {
    load();
  } catch (...) {  // the program will get it, too
    ::_exit(is_loaded);
  }
  ::_exit(is_loaded);
}

std::string ending_of(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == is_loaded) return "";
  if (WIFEXITED(status)) {
    return fmt::format("it ends the program with exit code {} when it is loaded",
                       WEXITSTATUS(status));
  }
  if (WTERMSIG(status) == SIGALRM) {
    return fmt::format("it is not loaded after {} seconds: it hangs", max_seconds);
  }
  return fmt::format("it crashes when it is loaded (signal {}: {})", WTERMSIG(status),
                     ::strsignal(WTERMSIG(status)));
}

}  // namespace

ModuleMark::ModuleMark(const fs::path& module, const std::string& what)
    : folder_(cache_folder()), name_(name_of(module, what)) {}

bool ModuleMark::is_set() const {
  std::error_code ignored;
  return !folder_.empty() && fs::exists(folder_ / name_, ignored);
}

void ModuleMark::set() const {
  if (!folder_.empty()) remember(folder_, name_);
}

std::string why_it_ends_a_process(const fs::path& module, const std::function<void()>& load) {
  const ModuleMark mark(module, "");
  if (mark.is_set()) return "";
  const pid_t child = ::fork();
  if (child < 0) return "";
  if (child == 0) load_in_child(load);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != child) return "";  // the program's own handling of its children has taken it
  const std::string ending = ending_of(status);
  if (ending.empty()) mark.set();
  return ending.empty() ? ""
                        : ending +
                              ": it is damaged or faulty; rebuild it, or take it out of the "
                              "plugin folder";
}

}  // namespace tandem
