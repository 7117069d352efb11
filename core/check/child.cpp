#include "core/check/child.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <optional>
#include <utility>

#include "core/check/channel.h"
#include "core/check/promises/data.h"
#include "core/check/promises/fresh_process.h"
#include "core/check/units.h"
#include "core/data/dataset.h"

namespace tandem::checker {

namespace {

using Verdict = Outcome::Verdict;

// A promise is broken if its check throws; the text of the error is the detail.
template <class Check>
Outcome tried(const Check& check) {
  try {
    return check();
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
    for (const std::string& target : options_.targets) {  // the net may have layers of them
      if (is_file(target)) static_cast<void>(units_of_module(registry_, target));
    }
    if (!options_.net.empty()) options_.cases.uses = uses_of(registry_, options_);
  }

  // The promises of all units, from `first` on.
  void run(Position first) {
    const std::vector<Unit> units = units_of(registry_, options_);
    const bool has_layer =
        std::any_of(units.begin(), units.end(), [](const Unit& unit) { return !unit.is_data; });
    if (has_layer && is_host_addressable(registry_.backend(options_.device))) {
      const int patience = options_.seconds > 0 ? int(options_.seconds) : options_.patience;
      fresh_.emplace(registry_, options_.cases.uses, patience, channel_.file());
    }
    std::optional<BackendDevice> device;
    for (size_t u = first.unit; u < units.size() && !is_late(); ++u) {
      const size_t from = u == first.unit ? first.promise : 0;
      repeats_ = u != first.unit || first.repeats;
      channel_.write({"type", units[u].target, units[u].type, std::to_string(u),
                      units[u].is_data ? "data" : "layer"});
      if (units[u].is_data) {
        run_data(units[u], from);
        continue;
      }
      if (!device) device.emplace(registry_.backend(options_.device));
      run_layer(units[u], *device, from);
    }
    channel_.write({is_late() ? "late" : "end"});
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

  // Writes what check(promise, is it the first that is tried) gives for each promise of the table
  // that is asked for.
  template <class Promises, class Check>
  void run_all(const Promises& table, size_t first, const Check& check) {
    bool is_first = first == 0 || !options_.promise.empty();
    for (size_t i = first; i < table.size() && !is_late(); ++i) {
      channel_.write({"unit", table[i].name, std::to_string(i), table[i].text});
      const bool is_asked = options_.promise.empty() || options_.promise == table[i].name;
      const bool is_due = options_.seconds == 0 || table[i].before_training;
      const bool is_left_out =
          std::count(options_.without.begin(), options_.without.end(), table[i].name) > 0;
      if (is_left_out && is_asked && is_due) {
        channel_.write_outcome(left_out(left_out_by_user));
      } else if (is_asked && is_due) {
        channel_.write_outcome(check(table[i], std::exchange(is_first, false)));
      } else {
        channel_.write({"skip"});
      }
    }
  }

  void run_layer(const Unit& unit, KernelDevice& device, size_t first) {
    CaseOptions options = options_.cases;
    options.sizes = unit.sizes;
    options.trying = [&](const std::string& arguments) { channel_.write({"case", arguments}); };
    std::optional<Subject> subject;
    std::string refusal;
    try {
      subject.emplace(Subject{registry_, devices_, device, registry_.layer_type(unit.type),
                              registry_.kernel(unit.type, device.kind()),
                              cases_of(registry_, device, unit.type, options),
                              fresh_ ? &*fresh_ : nullptr});
    } catch (const Error& failure) {
      refusal = failure.what();
    }
    run_all(promises(), first, [&](const Promise& promise, bool is_first) {
      if (!subject.has_value()) return is_first ? broken(refusal) : not_applicable();
      if (promise.compares && !repeats_) return not_applicable();
      Outcome outcome = run(*subject, promise);
      if (std::string_view(promise.name) == repeats) repeats_ = outcome.verdict != Verdict::broken;
      return outcome;
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
      return tried([&] { return promise.check(subject); });
    });
  }

  // The outcome of the first case that breaks the promise or gives figures; else the first that
  // says something, or that of all.
  Outcome run(const Subject& subject, const Promise& promise) {
    Outcome result = not_applicable();
    for (const Case& one : subject.cases) {
      if (is_late()) break;
      channel_.write({"case", one.arguments});
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
      return tried([&] { return promise.check(subject, *fewer); });
    }
  }

  CheckOptions options_;
  Channel channel_;
  Registry registry_;
  OpenDevices devices_;
  std::optional<FreshProcess> fresh_;
  bool repeats_ = true;  // the layer, as far as is known
};

}  // namespace

void run_child(const CheckOptions& options, int file, Position first) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, SIG_DFL);
  std::signal(SIGPIPE, SIG_IGN);
  const rlimit none{0, 0};
  static_cast<void>(::setrlimit(RLIMIT_CORE, &none));
  try {
    Child(options, file).run(first);
  } catch (const std::exception& failure) {
    Channel(file).write({"fail", failure.what()});
  }
  ::_exit(0);
}

}  // namespace tandem::checker
