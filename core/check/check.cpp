#include "core/check/check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/base/text/strings.h"

namespace tandem::checker {

namespace {

// What the child writes: one line each, of fields divided by `divider`.
//   unit LAYER PROMISE       this is next
//   case ARGUMENTS           in this case
//   kept | none | broken DETAIL | note DETAIL NAME VALUE NAME VALUE ...
//   skip                     it is not asked for
//   fail DETAIL              nothing can be checked
//   end
constexpr char divider = '\x1f';
using Verdict = Outcome::Verdict;
constexpr std::pair<Verdict, const char*> verdicts[] = {{Verdict::kept, "kept"},
                                                        {Verdict::not_applicable, "none"},
                                                        {Verdict::broken, "broken"},
                                                        {Verdict::note, "note"}};

class Channel {
 public:
  explicit Channel(int file) : file_(file) {}
  template <class... Fields>
  void write(const Fields&... fields) const {
    std::string line;
    ((line += line.empty() ? std::string(fields) : divider + std::string(fields)), ...);
    std::replace(line.begin(), line.end(), '\n', ' ');
    line += '\n';
    for (size_t done = 0; done < line.size();) {
      const ssize_t written = ::write(file_, line.data() + done, line.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) _exit(1);
      done += size_t(written);
    }
  }
  void write_outcome(const Outcome& outcome) const {
    std::string figures;
    for (const auto& [name, value] : outcome.figures) {
      figures += fmt::format("{}{}{}", name, divider, value) + divider;
    }
    for (const auto& [verdict, word] : verdicts) {
      if (outcome.verdict == verdict) write(word, outcome.detail, figures);
    }
  }

 private:
  int file_;
};

bool is_file(const std::string& target) {
  return target.find('/') != std::string::npos || target.ends_with(".so");
}

// The types of a module file. It may be in a plugin folder, too, and is loaded already then.
std::vector<std::string> types_of(Registry& registry, const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const ModuleReport* found = nullptr;
  for (const ModuleReport& module : registry.modules()) {
    if (!module.shadowed && fs::equivalent(module.path, file, ignored)) found = &module;
  }
  if (found == nullptr) found = &registry.load(fs::path(file));
  if (!found->loaded) throw error("{} is not loaded: {}", file, found->reason);
  std::vector<std::string> types;
  for (const std::string& offer : found->offers) {
    if (offer.starts_with("layer ")) types.push_back(offer.substr(6));
  }
  if (types.empty()) throw error("{} has no layer type: only these are checked", file);
  return types;
}

// The error for a name that is not among the known ones.
Error not_there(const std::string& what, const std::string& name,
                const std::vector<std::string>& known) {
  return error("{}{}; there are: {}", what, did_you_mean(name, known), fmt::join(known, ", "));
}

struct Unit {
  std::string target, type;
};

// The types of which the net has a layer; each once.
std::vector<std::string> types_of(const std::vector<NetUse>& uses) {
  std::vector<std::string> types;
  for (const NetUse& use : uses) {
    if (std::count(types.begin(), types.end(), use.type) == 0) types.push_back(use.type);
  }
  return types;
}

// The layers of the net, or those that --layer names; empty without a net.
std::vector<NetUse> uses_of(const Registry& registry, const CheckOptions& options) {
  if (options.net.empty()) return {};
  std::vector<NetUse> uses = uses_in_net(registry, options.net);
  if (options.layer.empty()) return uses;
  std::vector<std::string> known;
  for (const NetUse& use : uses) known.push_back(use.layer);
  std::erase_if(uses, [&](const NetUse& use) {
    return use.layer != options.layer && use.type != options.layer;
  });
  if (uses.empty()) {
    throw not_there(fmt::format("{} has no layer '{}'", options.net, options.layer), options.layer,
                    known);
  }
  return uses;
}

std::vector<Unit> units_of(Registry& registry, const CheckOptions& options) {
  std::vector<Unit> units;
  for (const std::string& target : options.targets) {
    if (!is_file(target)) {
      units.push_back({target, registry.layer_type(target).name});
      continue;
    }
    for (const std::string& type : types_of(registry, target)) units.push_back({target, type});
  }
  const std::vector<std::string> in_net = types_of(options.cases.uses);
  if (options.targets.empty()) {
    const std::vector<std::string> all = options.net.empty() ? registry.layer_types() : in_net;
    for (const std::string& type : all) units.push_back({type, type});
  }
  if (!options.net.empty()) {
    std::erase_if(units, [&](const Unit& unit) {
      return std::count(in_net.begin(), in_net.end(), unit.type) == 0;
    });
    if (units.empty()) throw error("{} has no layer of these types", options.net);
    return units;
  }
  if (options.layer.empty()) return units;
  std::vector<std::string> known;
  for (const Unit& unit : units) known.push_back(unit.type);
  std::erase_if(units, [&](const Unit& unit) { return unit.type != options.layer; });
  if (units.empty()) {
    throw not_there(fmt::format("no layer type '{}' is checked", options.layer), options.layer,
                    known);
  }
  return units;
}

// A promise is broken if its check throws; the text of the error is the detail.
Outcome outcome_of(const Promise& promise, const Subject& subject, const Case& one) {
  try {
    return promise.check(subject, one);
  } catch (const Error& failure) {
    return broken(failure.what());
  }
}

class Child {
 public:
  Child(const CheckOptions& options, int file)
      : options_(options),
        channel_(file),
        registry_(Registry::with_defaults()),
        devices_(registry_) {
    registry_.load_kernels();
    load_modules();
    options_.cases.uses = uses_of(registry_, options_);
  }

  // Units of the types, one for each promise, from `first` on.
  void run(size_t first) {
    const std::vector<Unit> units = units_of(registry_, options_);
    BackendDevice device(registry_.backend(options_.device));
    const size_t each = promises().size();
    for (size_t u = first / each; u < units.size(); ++u) {
      run(units[u], device, u == first / each ? first % each : 0);
    }
    channel_.write("end");
  }

 private:
  void run(const Unit& unit, KernelDevice& device, size_t first) {
    channel_.write("type", unit.target, unit.type);
    std::optional<Subject> subject;
    std::string refusal;
    try {
      subject.emplace(Subject{registry_, devices_, device, registry_.layer_type(unit.type),
                              registry_.kernel(unit.type, device.kind()),
                              cases_of(registry_, device, unit.type, options_.cases)});
    } catch (const Error& failure) {
      refusal = failure.what();
    }
    for (size_t i = first; i < promises().size(); ++i) {
      const Promise& promise = promises()[i];
      channel_.write("unit", promise.name);
      if (!options_.promise.empty() && options_.promise != promise.name) {
        channel_.write("skip");
      } else if (!subject.has_value()) {
        const bool is_first = i == 0 || !options_.promise.empty();
        channel_.write_outcome(is_first ? broken(refusal) : not_applicable());
      } else {
        channel_.write_outcome(run(*subject, promise));
      }
    }
  }

  // The outcome of the first case that breaks the promise or gives figures; else the first note,
  // or that of all.
  Outcome run(const Subject& subject, const Promise& promise) {
    Outcome result = not_applicable();
    for (const Case& one : subject.cases) {
      channel_.write("case", one.arguments);
      Outcome outcome = outcome_of(promise, subject, one);
      if (outcome.verdict == Verdict::broken || !outcome.figures.empty()) return outcome;
      const bool is_first_note =
          outcome.verdict == Verdict::note && result.verdict != Verdict::note;
      const bool is_first = result.verdict == Verdict::not_applicable;
      if (is_first_note || is_first) result = std::move(outcome);
    }
    return result;
  }

  // The net may have layers of them.
  void load_modules() {
    for (const std::string& target : options_.targets) {
      if (is_file(target)) static_cast<void>(types_of(registry_, target));
    }
  }

  CheckOptions options_;
  Channel channel_;
  Registry registry_;
  OpenDevices devices_;
};

// Does not return.
[[noreturn]] void run_child(const CheckOptions& options, int file, size_t first) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, SIG_DFL);
  const rlimit none{0, 0};
  static_cast<void>(::setrlimit(RLIMIT_CORE, &none));
  try {
    Child(options, file).run(first);
  } catch (const std::exception& failure) {
    Channel(file).write("fail", failure.what());
  }
  ::_exit(0);
}

class Parent {
 public:
  Parent(const CheckOptions& options, const std::function<void(const Finding&)>& report)
      : options_(options), report_(report) {}

  void run() {
    while (!ended_) run_once();
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
    if (hangs) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!failure_.empty()) throw Error(failure_);
    if (ended_) return;
    died(hangs ? fmt::format("it did not return within {} seconds", options_.patience)
         : WIFSIGNALED(status)
             ? fmt::format("it crashed: {}", ::strsignal(WTERMSIG(status)))
             : fmt::format("it ended the process with exit code {}", WEXITSTATUS(status)),
         hangs);
  }

  // False if the child is silent for too long.
  bool listen(int file) {
    std::string text;
    char buffer[4096];
    for (;;) {
      pollfd wait{file, POLLIN, 0};
      const int ready = ::poll(&wait, 1, 1000 * options_.patience);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return false;
      const ssize_t got = ::read(file, buffer, sizeof buffer);
      if (got <= 0) return true;
      text.append(buffer, size_t(got));
      for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        take(split(text.substr(0, end), divider));
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
      promise_.clear();
      case_.clear();
    } else if (what == "unit") {
      promise_ = more;
      case_.clear();
    } else if (what == "case") {
      case_ = more;
    } else if (what == "fail") {
      failure_ = more;
    } else if (what == "end") {
      ended_ = true;
    } else {
      ++next_;
      for (const auto& [verdict, word] : verdicts) {
        if (what != word) continue;
        report({verdict, more, verdict == Outcome::Verdict::note ? figures_of(fields) : Figures{}});
      }
    }
  }

  using Figures = std::map<std::string, double>;
  static Figures figures_of(const std::vector<std::string>& fields) {
    Figures figures;
    for (size_t i = 2; i + 1 < fields.size(); i += 2) figures[fields[i]] = std::stod(fields[i + 1]);
    return figures;
  }

  void report(Outcome outcome) const {
    const auto found =
        std::find_if(promises().begin(), promises().end(),
                     [&](const Promise& promise) { return promise.name == promise_; });
    std::string command;
    if (outcome.verdict == Verdict::broken) {
      const bool names_type = is_file(target_) && options_.net.empty();
      command = fmt::format("tandem plugin check {}{}{}{} --promise '{}'{}", target_,
                            options_.net.empty() ? "" : " --net " + options_.net,
                            names_type ? " --layer " + type_ : "",
                            options_.device == default_kind ? "" : " --device " + options_.device,
                            promise_, case_.empty() ? given_arguments() : case_);
    }
    report_({type_, promise_, found->text, std::move(outcome), command});
  }

  // Those of a case that is refused, so that there is none.
  [[nodiscard]] std::string given_arguments() const {
    std::string arguments;
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
    if (no_case) promise_ = promises().front().name;
    const std::string rest = hangs ? "; the promises after this one are not tried" : "";
    report(broken(how + (case_.empty() ? " before the first case" : "") + rest));
    const size_t each = promises().size();
    next_ = no_case || hangs ? (next_ / each + 1) * each : next_ + 1;
  }

  const CheckOptions& options_;
  const std::function<void(const Finding&)>& report_;
  size_t next_ = 0;
  bool ended_ = false;
  std::string target_, type_, promise_, case_, failure_;
};

}  // namespace

void check_layers(const CheckOptions& options, const std::function<void(const Finding&)>& report) {
  std::vector<std::string> names;
  for (const Promise& promise : promises()) names.emplace_back(promise.name);
  if (!options.promise.empty() && std::count(names.begin(), names.end(), options.promise) == 0) {
    throw not_there(fmt::format("unknown promise '{}'", options.promise), options.promise, names);
  }
  Parent(options, report).run();
}

}  // namespace tandem::checker
