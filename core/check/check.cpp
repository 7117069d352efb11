#include "core/check/check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>

#include "core/base/text/strings.h"
#include "core/check/data.h"
#include "core/data/dataset.h"

namespace tandem::checker {

namespace {

// What the child writes: one line each, of fields divided by `divider`.
//   type TARGET TYPE NUMBER KIND  the next unit: a layer type, or a data set ("data")
//   unit PROMISE NUMBER TEXT this is next
//   case ARGUMENTS           in this case
//   kept | none | broken DETAIL | note DETAIL NAME VALUE NAME VALUE ... | left DETAIL
//   skip                     it is not asked for
//   fail DETAIL              nothing can be checked
//   end | late               all is done; the time is over
constexpr char divider = '\x1f';
using Verdict = Outcome::Verdict;
constexpr std::pair<Verdict, const char*> verdicts[] = {{Verdict::kept, "kept"},
                                                        {Verdict::not_applicable, "none"},
                                                        {Verdict::broken, "broken"},
                                                        {Verdict::note, "note"},
                                                        {Verdict::left_out, "left"}};

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
    std::string detail = outcome.detail;
    for (size_t at = 0; (at = detail.find(" -nan")) != std::string::npos;) detail.erase(at + 1, 1);
    for (const auto& [verdict, word] : verdicts) {
      if (outcome.verdict == verdict) write(word, detail, figures);
    }
  }

 private:
  int file_;
};

bool is_file(const std::string& target) {
  return target.find('/') != std::string::npos || target.ends_with(".so");
}

// What is checked with all promises: a layer type with cases of some sizes, or a data set.
struct Unit {
  std::string target, type;
  bool is_data = false;
  CaseSizes sizes = CaseSizes::all;
};

// Those of a module file. It may be in a plugin folder, too, and is loaded already then.
std::vector<Unit> units_of(Registry& registry, const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto find = [&]() -> const ModuleReport* {
    for (const ModuleReport& module : registry.modules()) {
      if (!module.shadowed && fs::equivalent(module.path, file, ignored)) return &module;
    }
    return nullptr;
  };
  const ModuleReport* found = find();
  if (found == nullptr && fs::path(file).filename().string().starts_with("tandem_")) {
    registry.load_all();  // it may be deferred
    found = find();
  }
  if (found == nullptr) found = &registry.load(fs::path(file));
  if (!found->loaded) throw error("{} is not loaded: {}", file, found->reason);
  std::vector<Unit> units;
  for (const std::string& offer : found->offers) {
    if (offer.starts_with("layer ")) units.push_back({file, offer.substr(6)});
    if (offer.starts_with("dataset ")) units.push_back({file, offer.substr(8), true});
  }
  if (units.empty())
    throw error("{} has no layer type and no data set: only these are checked", file);
  return units;
}

// The error for a name that is not among the known ones.
Error not_there(const std::string& what, const std::string& name,
                const std::vector<std::string>& known) {
  return error("{}{}; there are: {}", what, did_you_mean(name, known), fmt::join(known, ", "));
}

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

// First all types with what is quickly done.
std::vector<Unit> units_before_training(const std::vector<std::string>& types) {
  std::vector<Unit> units;
  for (const CaseSizes sizes : {CaseSizes::small, CaseSizes::large}) {
    for (const std::string& type : types) units.push_back({type, type, false, sizes});
  }
  return units;
}

std::vector<Unit> units_of(Registry& registry, const CheckOptions& options) {
  const std::vector<std::string> in_net = types_of(options.cases.uses);
  if (!options.cases.uses.empty() && options.seconds > 0) return units_before_training(in_net);
  std::vector<Unit> units;
  for (const std::string& target : options.targets) {
    if (is_file(target)) {
      for (Unit& unit : units_of(registry, target)) units.push_back(std::move(unit));
    } else if (registry.find_layer_type(target) == nullptr && is_dataset(registry, target)) {
      units.push_back({target, target, true});
    } else {
      units.push_back({target, registry.layer_type(target).name});
    }
  }
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
  std::erase_if(units, [&](const Unit& unit) {
    return unit.type != options.layer || (options.seconds > 0 && !unit.is_data);
  });
  if (units.empty()) {
    throw not_there(fmt::format("no layer type '{}' is checked", options.layer), options.layer,
                    known);
  }
  return units;
}

// A promise is broken if its check throws; the text of the error is the detail.
template <class Check>
Outcome outcome_of(const Check& check) {
  try {
    return check();
  } catch (const Error& failure) {
    return broken(failure.what());
  }
}

// Where the child begins, or goes on after another one has died.
struct Position {
  size_t unit = 0, promise = 0;
};

class Child {
 public:
  Child(const CheckOptions& options, int file)
      : options_(options),
        channel_(file),
        registry_(Registry::with_defaults()),
        devices_(registry_) {
    registry_.load_kernels();
    for (const std::string& target : options_.targets) {  // the net may have layers of them
      if (is_file(target)) static_cast<void>(units_of(registry_, target));
    }
    if (!options_.net.empty()) options_.cases.uses = uses_of(registry_, options_);
  }

  // The promises of all units, from `first` on.
  void run(Position first) {
    const std::vector<Unit> units = units_of(registry_, options_);
    std::optional<BackendDevice> device;
    for (size_t u = first.unit; u < units.size() && !is_late(); ++u) {
      const size_t from = u == first.unit ? first.promise : 0;
      channel_.write("type", units[u].target, units[u].type, std::to_string(u),
                     units[u].is_data ? "data" : "layer");
      if (units[u].is_data) {
        run_data(units[u], from);
        continue;
      }
      if (!device) device.emplace(registry_.backend(options_.device));
      run_layer(units[u], *device, from);
    }
    channel_.write(is_late() ? "late" : "end");
  }

 private:
  // Of the processors' time: other work of the machine does not count.
  [[nodiscard]] bool is_late() const {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return options_.seconds > 0 &&
           static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec) >
               options_.seconds;
  }

  // Writes what check(promise) gives for each promise of the table that is asked for.
  template <class Promises, class Check>
  void run_all(const Promises& table, size_t first, const Check& check) {
    for (size_t i = first; i < table.size() && !is_late(); ++i) {
      channel_.write("unit", table[i].name, std::to_string(i), table[i].text);
      const bool is_asked = options_.promise.empty() || options_.promise == table[i].name;
      const bool is_left_out =
          std::count(options_.without.begin(), options_.without.end(), table[i].name) > 0;
      if (is_left_out && is_asked && is_due(table[i])) {
        channel_.write_outcome(left_out(left_out_by_user));
      } else if (is_asked && is_due(table[i])) {
        channel_.write_outcome(check(table[i], i == 0 || !options_.promise.empty()));
      } else {
        channel_.write("skip");
      }
    }
  }
  [[nodiscard]] bool is_due(const Promise& promise) const {
    return options_.seconds == 0 || promise.before_training;
  }
  [[nodiscard]] bool is_due(const DataPromise& promise) const {
    return options_.seconds == 0 || promise.before_training;
  }

  void run_layer(const Unit& unit, KernelDevice& device, size_t first) {
    CaseOptions options = options_.cases;
    options.sizes = unit.sizes;
    options.trying = [&](const std::string& arguments) { channel_.write("case", arguments); };
    std::optional<Subject> subject;
    std::string refusal;
    try {
      subject.emplace(Subject{registry_, devices_, device, registry_.layer_type(unit.type),
                              registry_.kernel(unit.type, device.kind()),
                              cases_of(registry_, device, unit.type, options)});
    } catch (const Error& failure) {
      refusal = failure.what();
    }
    run_all(promises(), first, [&](const Promise& promise, bool is_first) {
      if (subject.has_value()) return run(*subject, promise);
      return is_first ? broken(refusal) : not_applicable();
    });
  }

  // A data set that needs a source is not checked without one.
  void run_data(const Unit& unit, size_t first) {
    DataSubject subject{registry_,           unit.type,
                        options_.data,       options_.data_parameters,
                        options_.data_shape, options_.class_names,
                        options_.validates};
    Outcome refused = kept();
    try {
      DatasetOptions options;
      options.source = options_.data.empty() ? unit.type : options_.data;
      options.shape = options_.data_shape;
      options.class_names = options_.class_names;
      options.parameters = options_.data_parameters;
      static_cast<void>(Dataset(registry_, options));
      if (options_.seconds > 0) limit_time(subject, options_.seconds);
    } catch (const Error& refusal) {
      refused = options_.data.empty()
                    ? note(fmt::format("not checked: give what it reads with --data ({})",
                                       refusal.what()))
                    : broken(refusal.what());
    }
    run_all(data_promises(), first, [&](const DataPromise& promise, bool is_first) {
      if (refused.verdict != Verdict::kept) return is_first ? refused : not_applicable();
      return outcome_of([&] { return promise.check(subject); });
    });
  }

  // The outcome of the first case that breaks the promise or gives figures; else the first that
  // says something, or that of all.
  Outcome run(const Subject& subject, const Promise& promise) {
    Outcome result = not_applicable();
    for (const Case& one : subject.cases) {
      if (is_late()) break;
      channel_.write("case", one.arguments);
      Outcome outcome = try_case(subject, promise, one);
      if (outcome.verdict == Verdict::broken || !outcome.figures.empty()) return outcome;
      const bool is_first = result.verdict == Verdict::not_applicable;
      if (is_first || (says_something(outcome) && !says_something(result))) {
        result = std::move(outcome);
      }
    }
    return result;
  }
  static bool says_something(const Outcome& outcome) {
    return outcome.verdict == Verdict::note || outcome.verdict == Verdict::left_out;
  }

  // Where a pass refuses labels beyond a number of classes, with fewer.
  static Outcome try_case(const Subject& subject, const Promise& promise, const Case& one) {
    try {
      return promise.check(subject, one);
    } catch (const Violation& violation) {
      return broken(violation.what());
    } catch (const Error& failure) {
      const std::optional<Case> fewer = with_fewer_classes(subject, one);
      if (!fewer.has_value()) return broken(failure.what());
      return outcome_of([&] { return promise.check(subject, *fewer); });
    }
  }

  CheckOptions options_;
  Channel channel_;
  Registry registry_;
  OpenDevices devices_;
};

// Does not return.
[[noreturn]] void run_child(const CheckOptions& options, int file, Position first) {
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
      is_data_ = fields[4] == "data";
      const size_t unit = std::stoul(fields[3]);
      if (unit != next_.unit) next_ = {unit, 0};
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
    next_ =
        no_case || hangs ? Position{next_.unit + 1, 0} : Position{next_.unit, next_.promise + 1};
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
