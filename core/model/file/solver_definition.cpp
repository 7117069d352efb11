#include "core/model/file/solver_definition.h"

#include <algorithm>
#include <functional>
#include <set>

#include "core/base/text/strings.h"
#include "core/model/file/fields.h"
#include "core/model/file/net_phases.h"

namespace tandem {

namespace {

using Solver = SolverDefinition;

const std::string owner = "solver";

// ---- Fields: the functions that read and check, and write, each of them -------------------------

struct SolverField {
  const char* name;
  std::function<void(const Field&, Solver&)> read;
  std::function<void(const Solver&, Message&)> write = {};  // empty: the field is not written
};

struct Range {
  bool (*holds)(double);
  const char* right;
};
constexpr Range any{[](double) { return true; }, ""};
constexpr Range not_negative{[](double value) { return value >= 0; }, "at least 0"};
constexpr Range above_zero{[](double value) { return value > 0; }, "above 0"};
// The share of the past that a running mean keeps.
constexpr Range decay{[](double value) { return value >= 0 && value < 1; },
                      "at least 0 and below 1"};

SolverField number(const char* name, double Solver::*member, const Range& range) {
  return {name,
          [=](const Field& f, Solver& s) {
            s.*member = number_of(f, owner);
            if (!range.holds(s.*member)) throw wrong_value(f, owner, range.right);
          },
          [=](const Solver& s, Message& to) { to.add(name, fmt::format("{}", s.*member)); }};
}
// A 0 is not written: it is the value of an absent field.
SolverField integer(const char* name, int64_t Solver::*member, int64_t least = 0) {
  return {name,
          [=](const Field& f, Solver& s) {
            s.*member = integer_of(f, owner);
            if (s.*member < least) throw wrong_value(f, owner, fmt::format("at least {}", least));
          },
          [=](const Solver& s, Message& to) {
            if (s.*member > 0) to.add(name, fmt::format("{}", s.*member));
          }};
}
SolverField text(const char* name, std::string Solver::*member) {
  return {name, [=](const Field& f, Solver& s) { s.*member = text_of(f, owner); },
          [=](const Solver& s, Message& to) {
            if (!(s.*member).empty()) to.add(name, s.*member, true);
          }};
}
SolverField word(const char* name, std::string Solver::*member,
                 const std::vector<std::string>& known) {
  SolverField field = text(name, member);
  field.read = [=](const Field& f, Solver& s) { s.*member = word_of(f, owner, known); };
  return field;
}
SolverField unwritten(SolverField field) {
  field.write = {};
  return field;
}
// Has no effect here, which the log says.
SolverField unused(const char* name, const char* why) {
  return {name, [why](const Field& f, Solver& s) {
            const std::string note = fmt::format("solver: {} is not used: {}", f.name, why);
            s.notes.push_back(note + in_file(f.location));
          }};
}

// Most files have both fields; one note is enough.
void note_devices(const Field& field, Solver& solver) {
  const char* why = "devices are chosen with --devices";
  const bool noted =
      std::any_of(solver.notes.begin(), solver.notes.end(),
                  [&](const std::string& note) { return note.find(why) != std::string::npos; });
  if (!noted) unused("", why).read(field, solver);
}

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// By name in any case, as old files have "ADAM", or by the number of the old enum.
void read_type(const Field& field, Solver& solver) {
  static const std::vector<std::string> old_numbers{"SGD",     "Nesterov", "AdaGrad",
                                                    "RMSProp", "AdaDelta", "Adam"};
  const std::string written = text_of(field, owner);
  int64_t index = -1;
  if (field.name == "solver_type" && parse_integer(written, &index) && index >= 0 &&
      index < static_cast<int64_t>(old_numbers.size())) {
    solver.type = old_numbers[static_cast<size_t>(index)];
    return;
  }
  const std::vector<std::string>& known = solver_types();
  const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& type) {
    return lower_case(type) == lower_case(written);
  });
  solver.type = found != known.end() ? *found : word_of(field, owner, known);
}

// Caffe's -1: no clipping.
void read_clip(const Field& field, Solver& solver) {
  const double clip = number_of(field, owner);
  if (clip == 0) throw wrong_value(field, owner, "above 0, or -1 for no clipping");
  solver.clip_gradients = std::max(0.0, clip);
}

// An update cannot be interrupted, so it must not last for days.
void read_micro_batches_per_step(const Field& field, Solver& solver) {
  constexpr int64_t most = 100000;
  solver.micro_batches_per_step = integer_of(field, owner);
  if (solver.micro_batches_per_step < 1 || solver.micro_batches_per_step > most) {
    throw wrong_value(field, owner, fmt::format("from 1 to {}", most));
  }
}

void read_step_value(const Field& field, Solver& solver) {
  const int64_t value = integer_of(field, owner);
  if (!solver.step_values.empty() && value <= solver.step_values.back()) {
    throw wrong_value(field, owner,
                      fmt::format("above the stepvalue before it, {}", solver.step_values.back()));
  }
  solver.step_values.push_back(value);
}

void read_test_steps(const Field& field, Solver& solver) {
  const int64_t steps = integer_of(field, owner);
  if (steps < 0) throw wrong_value(field, owner, "at least 0");
  if (solver.test_steps == 0) solver.test_steps = steps;  // of the first test net
}

void read_test_state(const Field& field, Solver& solver) {
  solver.test_states.push_back(read_state(field, owner));
  if (solver.test_states.size() == 2) {
    solver.notes.push_back(fmt::format(
        "solver: only the first test_state is tested (stages: {}); test another one with "
        "--test-stage{}",
        fmt::join(solver.test_states.front().stages, ", "), in_file(field.location)));
  }
}

void read_test_net(const Field& field, Solver& solver) {
  solver.test_nets.push_back(text_of(field, owner));
  if (solver.test_nets.size() == 2) {
    solver.notes.push_back(fmt::format("solver: only the first test_net is tested ('{}'){}",
                                       solver.test_nets.front(), in_file(field.location)));
  }
}

// A net in the solver's file. train_net_param and test_net_param are each for one phase.
SolverField net_param(const char* name, int32_t phase) {
  return {name, [phase](const Field& field, Solver& solver) {
            NetDefinition net = parse_net(block_of(field, owner), solver.file);
            if (net.name.empty()) net.name = std::filesystem::path(solver.file).stem().string();
            if (phase < 0 || !solver.net_definition) {
              solver.net_definition = std::move(net);
            } else if (phase == TANDEM_TEST) {
              solver.net_definition = joined(*solver.net_definition, net);
            } else {
              solver.net_definition = joined(net, *solver.net_definition);
            }
          }};
}

// In the order of a written file.
const std::vector<SolverField>& solver_fields() {
  using S = Solver;
  static const std::vector<SolverField> fields{
      {"type", read_type, [](const S& s, Message& to) { to.add("type", s.type, true); }},
      {"solver_type", read_type},
      number("momentum", &S::momentum, decay),
      number("momentum2", &S::momentum2, decay),
      number("rms_decay", &S::rms_decay, decay),
      number("delta", &S::delta, above_zero),
      number("trust_coefficient", &S::trust_coefficient, above_zero),
      number("weight_decay", &S::weight_decay, not_negative),
      word("regularization_type", &S::regularization, {"L1", "L2"}),
      {"clip_gradients", read_clip,
       [](const S& s, Message& to) {
         if (s.clip_gradients > 0) to.add("clip_gradients", fmt::format("{}", s.clip_gradients));
       }},
      {"iter_size", read_micro_batches_per_step,
       integer("iter_size", &S::micro_batches_per_step).write},
      word("lr_policy", &S::rate_policy, rate_policies()),
      number("base_lr", &S::base_rate, not_negative),
      number("gamma", &S::gamma, any),
      number("power", &S::power, any),
      integer("stepsize", &S::step_size),
      {"stepvalue", read_step_value,
       [](const S& s, Message& to) {
         for (const int64_t value : s.step_values) to.add("stepvalue", fmt::format("{}", value));
       }},
      integer("warmup_iter", &S::warm_up_steps),
      {"warmup_start_lr", number("warmup_start_lr", &S::warm_up_rate, not_negative).read,
       [](const S& s, Message& to) {
         if (s.warm_up_steps > 0) to.add("warmup_start_lr", fmt::format("{}", s.warm_up_rate));
       }},
      integer("max_iter", &S::max_steps),
      integer("display", &S::display),
      integer("average_loss", &S::average_loss, 1),
      integer("test_interval", &S::test_interval),
      {"test_iter", read_test_steps, integer("test_iter", &S::test_steps).write},
      {"test_initialization",
       [](const Field& f, S& s) { s.test_initialization = boolean_of(f, owner); },
       [](const S& s, Message& to) {
         to.add("test_initialization", s.test_initialization ? "true" : "false");
       }},
      integer("snapshot", &S::snapshot),
      text("snapshot_prefix", &S::snapshot_prefix),
      // Nets and initial weights have files of their own in a run folder, and the seed its record.
      unwritten(text("net", &S::net)),
      unwritten(text("train_net", &S::train_net)),
      {"test_net", read_test_net},
      net_param("net_param", -1),
      net_param("train_net_param", TANDEM_TRAIN),
      net_param("test_net_param", TANDEM_TEST),
      {"train_state", [](const Field& f, S& s) { s.train_state = read_state(f, owner); }},
      {"test_state", read_test_state},
      {"weights", [](const Field& f, S& s) { s.weights.push_back(text_of(f, owner)); }},
      {"random_seed",
       [](const Field& f, S& s) {
         const int64_t seed = integer_of(f, owner);  // Caffe's -1: any seed
         if (seed >= 0) s.seed = static_cast<uint64_t>(seed);
       }},
      unused("snapshot_format", "snapshots are safetensors files"),
      unused("snapshot_diff", "gradients are not saved"),
      unused("snapshot_after_train", "the last step is always saved"),
      {"solver_mode", note_devices},
      {"device_id", note_devices},
      unused("test_compute_loss", "the loss of the test phase is always shown"),
      unused("debug_info", "there is no such output"),
      unused("layer_wise_reduce", "the strategy decides it"),
  };
  return fields;
}

// ---- Checks of several fields together ----------------------------------------------------------

class Checks {
 public:
  // `written`: the fields of the file and their locations.
  Checks(const Solver& solver, const std::map<std::string, Location>& written)
      : solver_(solver), written_(written) {}

  void nets() const {
    if (has("net") && has("train_net")) {
      throw error("solver: net and train_net both name the net to train: keep one of them{}",
                  at("train_net"));
    }
    if (has("test_net") && !has("net") && !has("train_net")) {
      throw error("solver: test_net without a net to train: write net or train_net, too{}",
                  at("test_net"));
    }
    const bool tests = has("net") || has("test_net");
    if (solver_.test_interval > 0 && has("train_net") && !tests) {
      throw error(
          "solver: test_interval is {}, but with train_net alone there is no net to test: "
          "write test_net, too, or net instead of train_net{}",
          solver_.test_interval, at("test_interval"));
    }
  }

  void policy() const {
    const std::string& policy = solver_.rate_policy;
    const bool drops = policy == "step" || policy == "multistep" || policy == "exp";
    if (policy == "step") require(solver_.step_size > 0, "stepsize", "steps between two drops");
    if (policy == "multistep") {
      require(!solver_.step_values.empty(), "stepvalue", "steps that drop it");
    }
    if (drops) require(solver_.gamma > 0, "gamma", "above 0: the factor of each drop");
    if (policy == "inv" && solver_.gamma < 0) {
      throw error("solver: gamma is {}, but must be at least 0 with lr_policy 'inv'{}",
                  solver_.gamma, at("gamma"));
    }
    if (policy == "poly" || policy == "cosine") {
      require(solver_.max_steps > 0, "max_iter", "where the rate reaches zero");
    }
    if (has("warmup_start_lr") && solver_.warm_up_steps == 0) {
      throw error("solver: warmup_start_lr needs warmup_iter (steps until the rate is base_lr){}",
                  at("warmup_start_lr"));
    }
  }

  void rule() const {
    if (has("type") && has("solver_type")) {
      throw error("solver: type and solver_type both say the rule: keep one of them{}",
                  at("solver_type"));
    }
    const std::string& type = solver_.type;
    if ((type == "AdaGrad" || type == "RMSProp") && solver_.momentum > 0) {
      throw error("solver: momentum is {}, but must be 0: type '{}' has none{}", solver_.momentum,
                  type, at("momentum"));
    }
    if (type == "AdaDelta" && solver_.momentum == 0) {
      throw error(
          "solver: type 'AdaDelta' needs momentum (above 0: how its mean squares decay, "
          "e.g. 0.95){}",
          at("type"));
    }
    if (type == "AdamW" && solver_.regularization == "L1") {
      throw error(
          "solver: regularization_type is 'L1', but type 'AdamW' decays the weights "
          "themselves, which is neither L1 nor L2: use 'Adam' for L1{}",
          at("regularization_type"));
    }
  }

 private:
  [[nodiscard]] bool has(const std::string& field) const { return written_.contains(field); }
  // The location of the field, or the file for a missing one.
  [[nodiscard]] std::string at(const std::string& field) const {
    const auto found = written_.find(field);
    return in_file(found != written_.end() ? found->second : Location{solver_.file, 0, 0});
  }
  void require(bool present, const char* field, const char* meaning) const {
    if (present) return;
    throw error("solver: lr_policy '{}' needs {} ({}){}", solver_.rate_policy, field, meaning,
                at("lr_policy"));
  }

  const Solver& solver_;
  const std::map<std::string, Location>& written_;
};

const std::set<std::string>& repeated_fields() {
  static const std::set<std::string> fields{"stepvalue",      "test_iter",  "test_net",
                                            "test_net_param", "test_state", "weights"};
  return fields;
}

// ---- Reading ------------------------------------------------------------------------------------

Message changes_as_message(const std::map<std::string, std::string>& changes) {
  Message message;
  for (const auto& [name, value] : changes) {
    const bool repeats = name == "stepvalue";
    for (const std::string& one : repeats ? split(value, ',') : std::vector{value}) {
      message.fields.push_back({name, one, false, nullptr, {"--solver-option", 0, 0}});
    }
  }
  return message;
}

// A change replaces all values of its field in the file.
void read_fields(const Message& message, const std::map<std::string, std::string>& changes,
                 Solver& solver) {
  std::map<std::string, Location> written;
  const auto read_all = [&](const Message& from, bool is_file) {
    std::vector<FieldReader> readers;
    for (const SolverField& known : solver_fields()) {
      readers.push_back({known.name,
                         [&](const Field& field) {
                           const bool is_type = field.name == "solver_type";
                           if (is_file && changes.contains(is_type ? "type" : field.name)) return;
                           known.read(field, solver);
                           written[field.name] = field.location;
                         },
                         repeated_fields().count(known.name) > 0});
    }
    read_fields(from, "field", owner, readers);
  };
  read_all(message, true);
  read_all(changes_as_message(changes), false);
  const Checks checks(solver, written);
  checks.rule();
  checks.nets();
  checks.policy();
}

}  // namespace

const std::vector<std::string>& solver_types() {
  static const std::vector<std::string> types{"SGD",      "Nesterov", "AdaGrad", "RMSProp",
                                              "AdaDelta", "Adam",     "AdamW",   "LARS"};
  return types;
}

const std::vector<std::string>& rate_policies() {
  static const std::vector<std::string> policies{"fixed",     "step", "exp",     "inv",
                                                 "multistep", "poly", "sigmoid", "cosine"};
  return policies;
}

Solver read_solver(const std::filesystem::path& path,
                   const std::map<std::string, std::string>& changes) {
  Solver solver;
  solver.file = path.string();
  read_fields(read_text_format(path), changes, solver);
  return solver;
}

Solver read_solver_text(const std::string& text) {
  Solver solver;
  read_fields(parse_text_format(text, "solver"), {}, solver);
  return solver;
}

Solver default_solver(const std::string& type, const std::map<std::string, std::string>& changes) {
  Solver solver;
  read_type({"type", type, true, nullptr, {"--solver-type", 0, 0}}, solver);
  struct Usual {
    const char* type;
    double rate, momentum, decay, delta;
  };
  static constexpr Usual usual[] = {
      {"SGD", 0.01, 0.9, 0.0005, 1e-8},  {"Nesterov", 0.01, 0.9, 0.0005, 1e-8},
      {"AdaGrad", 0.01, 0, 0, 1e-8},     {"RMSProp", 0.001, 0, 0, 1e-8},
      {"AdaDelta", 1, 0.95, 0, 1e-6},    {"Adam", 0.001, 0.9, 0, 1e-8},
      {"AdamW", 0.001, 0.9, 0.01, 1e-8}, {"LARS", 1, 0.9, 0.0005, 1e-8},
  };
  for (const Usual& one : usual) {
    if (solver.type != one.type) continue;
    solver.base_rate = one.rate;
    solver.momentum = one.momentum;
    solver.weight_decay = one.decay;
    solver.delta = one.delta;
  }
  read_fields({}, changes, solver);
  return solver;
}

std::string write_solver(const Solver& solver) {
  Message message;
  for (const SolverField& field : solver_fields()) {
    if (field.write) field.write(solver, message);
  }
  return write_text_format(message);
}

}  // namespace tandem
