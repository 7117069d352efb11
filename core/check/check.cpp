#include "core/check/check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <optional>

#include "core/check/channel.h"
#include "core/check/child.h"
#include "core/check/promises/data.h"
#include "core/check/units.h"

namespace tandem::checker {

namespace {

using Verdict = Outcome::Verdict;

class Parent {
 public:
  Parent(const CheckOptions& options, const std::function<void(const Finding&)>& report)
      : options_(options), report_(report) {}

  // False if the time was over.
  bool run() {
    while (!ended_ && !is_late_) run_once();
    return !is_late_;
  }

 private:
  void run_once() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw error("no pipe: {}", std::strerror(errno));
    const pid_t child = ::fork();
    if (child < 0) throw error("no child process: {}", std::strerror(errno));
    if (child == 0) {
      ::close(ends[0]);
      run_child(options_, ends[1], next_);
    }
    ::close(ends[1]);
    const bool hangs = !listen(ends[0]);
    ::close(ends[0]);
    is_late_ = is_late_ || (hangs && milliseconds_left() == 0);
    if (hangs) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!failure_.empty()) throw Error(failure_);
    if (ended_ || is_late_) return;
    died(hangs ? fmt::format("it did not return within {} seconds (--patience)", options_.patience)
         : WIFSIGNALED(status)
             ? fmt::format("it crashed: {}", ::strsignal(WTERMSIG(status)))
             : fmt::format("it ended the process with exit code {}", WEXITSTATUS(status)),
         hangs);
  }

  // Of all the time that the check may take.
  [[nodiscard]] int milliseconds_left() const {
    if (options_.seconds == 0) return INT_MAX;
    const std::chrono::duration<double> past = std::chrono::steady_clock::now() - began_;
    constexpr double waits = 10;  // for other work of the machine
    return std::max(0, static_cast<int>(1000 * (waits * options_.seconds - past.count())));
  }

  // False if the child is silent for too long, or the time is over.
  bool listen(int file) {
    std::string text;
    char buffer[4096];
    for (;;) {
      pollfd wait{file, POLLIN, 0};
      const int ready = ::poll(&wait, 1, std::min(1000 * options_.patience, milliseconds_left()));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return false;
      const ssize_t got = ::read(file, buffer, sizeof buffer);
      if (got <= 0) return true;
      text.append(buffer, size_t(got));
      for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        take(fields_of(text.substr(0, end)));
        text.erase(0, end + 1);
      }
    }
  }

  void take(const std::vector<std::string>& fields) {
    const std::string& what = fields[0];
    const std::string more = fields.size() > 1 ? fields[1] : "";
    if (what == "type") {
      target_ = more;
      type_ = fields[2];
      is_data_ = fields[4] == "data";
      const size_t unit = std::stoul(fields[3]);
      if (unit != next_.unit) next_ = {unit};
      promise_.clear();
      case_.clear();
    } else if (what == "unit") {
      promise_ = more;
      next_.promise = std::stoul(fields[2]);
      text_ = fields[3];
      case_.clear();
    } else if (what == "case") {
      case_ = more;
    } else if (what == "fail") {
      failure_ = more;
    } else if (what == "late") {
      is_late_ = true;
    } else if (what == "end") {
      ended_ = true;
    } else {
      ++next_.promise;
      if (std::optional<Outcome> outcome = outcome_of(fields)) {
        const bool is_broken = outcome->verdict == Verdict::broken;
        if (is_broken && promise_ == repeats) next_.repeats = false;
        report(std::move(*outcome));
      }
    }
  }

  void report(Outcome outcome) const {
    std::string command;
    if (outcome.verdict == Verdict::broken) {
      const bool names_type = is_file(target_) && options_.net.empty();
      command = fmt::format("tandem plugin check {}{}{}{} --promise '{}'{}", target_,
                            options_.net.empty() ? "" : " --net " + options_.net,
                            names_type ? " --layer " + type_ : "",
                            options_.device == default_kind ? "" : " --device " + options_.device,
                            promise_, case_.empty() ? given_arguments() : case_);
    }
    report_({type_, promise_, text_, std::move(outcome), command, case_});
  }

  // Those of a case that is refused, so that there is none.
  [[nodiscard]] std::string given_arguments() const {
    std::string arguments = options_.data.empty() ? "" : " --data " + options_.data;
    for (const auto& [name, value] : options_.data_parameters) {
      arguments += fmt::format(" --data-option {}={}", name, value);
    }
    for (const auto& [name, value] : options_.cases.parameters) {
      arguments += fmt::format(" --set {}={}", name, value);
    }
    for (const Shape& shape : options_.cases.inputs) arguments += " --input " + to_string(shape);
    if (options_.cases.outputs > 0) {
      arguments += fmt::format(" --outputs {}", options_.cases.outputs);
    }
    return arguments;
  }

  // The rest of a type whose cases cannot even be made is left out.
  void died(const std::string& how, bool hangs) {
    if (type_.empty()) throw error("the plugin cannot be checked: {}", how);
    const bool no_case = promise_.empty();
    if (no_case) {
      promise_ = is_data_ ? data_promises().front().name : promises().front().name;
      text_ = is_data_ ? data_promises().front().text : promises().front().text;
    }
    report(broken(how + (case_.empty() ? " before the first case" : "")));
    if (hangs && is_data_) leave_out_rest(data_promises());
    if (hangs && !is_data_) leave_out_rest(promises());
    if (no_case || hangs) {
      next_ = {next_.unit + 1};
    } else {
      ++next_.promise;
    }
  }

  // Each of the promises would take as long until it is given up.
  template <class Promises>
  void leave_out_rest(const Promises& table) {
    bool is_after = false;
    for (const auto& one : table) {
      if (is_after && options_.promise.empty()) {
        promise_ = one.name;
        text_ = one.text;
        report(note("not tried: it hung"));
      }
      is_after = is_after || promise_ == one.name;
    }
  }

  const CheckOptions& options_;
  const std::function<void(const Finding&)>& report_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Position next_;
  bool ended_ = false, is_late_ = false, is_data_ = false;
  std::string target_, type_, promise_, text_, case_, failure_;
};

}  // namespace

void require_promises(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Promise& promise : promises()) known.emplace_back(promise.name);
  for (const DataPromise& promise : data_promises()) {
    const bool is_of_layers = std::count(known.begin(), known.end(), promise.name) > 0;
    if (!is_of_layers) known.emplace_back(promise.name);
  }
  for (const std::string& name : names) {
    if (std::count(known.begin(), known.end(), name) > 0) continue;
    throw not_there(fmt::format("unknown promise '{}'", name), name, known);
  }
}

bool check_plugins(const CheckOptions& options, const std::function<void(const Finding&)>& report) {
  require_promises(options.without);
  if (!options.promise.empty()) require_promises({options.promise});
  if (std::count(options.without.begin(), options.without.end(), options.promise) > 0) {
    throw error("promise '{}' is asked for and left out", options.promise);
  }
  return Parent(options, report).run();
}

}  // namespace tandem::checker
