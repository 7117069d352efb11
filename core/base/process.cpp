#include "include/tandem/process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace tandem {
namespace {

// All that the signal handler may touch.
std::atomic<bool> stopping{false};
std::atomic<bool> left_out{false};  // what wait_for_output() refused
std::atomic<int> lost_reason{0};    // errno of the first text that was lost, or of a later one
std::atomic<const char*> answer_line{nullptr};

extern "C" void on_stop_signal(int /*number*/) {
  const int saved = errno;
  stopping = true;
  const char* line = answer_line;
  // There is nobody to tell that the answer was lost. A pipe that nobody reads would hold the
  // program up here.
  pollfd errors{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&errors, 1, 0) == 1) {
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line, std::strlen(line));
  }
  errno = saved;
}

bool reader_has_ended() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

void open_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is taken. The wrong direction: a lost message remains an error.
    if (::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

bool wait_for_output(std::FILE* stream) {
  constexpr int milliseconds = 200;
  // A data set may have put a stream of its own, which has no descriptor, in the place of stderr.
  const int file = ::fileno(stream);
  pollfd output{file < 0 ? STDERR_FILENO : file, POLLOUT, 0};
  while (::poll(&output, 1, stopping ? 0 : milliseconds) <= 0) {  // a signal ends it, too
    if (!stopping) continue;
    left_out = true;
    return false;
  }
  return true;
}

void write_or_lose(std::FILE* stream, const std::string& text) {
  if (!wait_for_output(stream)) return;
  if (std::fwrite(text.data(), 1, text.size(), stream) == text.size()) return;
  if (stream == stdout) lost_reason = errno;
}

std::string lost_output() {
  if (left_out) return "standard output cannot be written: nobody reads the pipe";
  const bool lost_before = std::ferror(stdout) != 0;
  const bool lost_now = std::fflush(stdout) != 0;
  const int reason = lost_now ? errno : lost_reason.load();
  if ((!lost_before && !lost_now) || reader_has_ended()) return "";
  const std::string text = "standard output cannot be written";
  return reason != 0 ? text + ": " + std::strerror(reason) : text;
}

const std::atomic<bool>* stop_on_signals(const char* answer) {
  answer_line = answer;
  struct sigaction action {};
  action.sa_handler = &on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (number != SIGTERM && ::sigaction(number, nullptr, &before) == 0 &&
        before.sa_handler == SIG_IGN) {
      continue;
    }
    ::sigaction(number, &action, nullptr);
  }
  return &stopping;
}

}  // namespace tandem
