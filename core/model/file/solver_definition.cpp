#include "core/model/file/solver_definition.h"

#include <algorithm>
#include <functional>

#include "core/base/text/strings.h"
#include "core/model/file/fields.h"
#include "core/model/file/net_phases.h"

namespace tandem {

namespace {

using Solver = SolverDefinition;
using SolverField = MemberField<Solver>;

const std::string solver_owner = "solver";

// ---- Fields -------------------------------------------------------------------------------------

constexpr Range above_zero{[](double value) { return value > 0; }, "above 0"};
constexpr Range at_least_one{[](double value) { return value >= 1; }, "at least 1"};
// The share of the past that a running mean keeps.
constexpr Range decay{[](double value) { return value >= 0 && value < 1; },
                      "at least 0 and below 1"};
// An update cannot be interrupted, so it must not last for days.
constexpr Range micro_batches{[](double value) { return value >= 1 && value <= 100000; },
                              "from 1 to 100000"};

SolverField unwritten(SolverField field) {
  field.write = {};
  return field;
}
SolverField written_if(bool (*is_written)(const Solver&), SolverField field) {
  field.write = [is_written, write = field.write](const Solver& solver, Message& to) {
    if (is_written(solver)) write(solver, to);
  };
  return field;
}
SolverField repeated(SolverField field) {
  field.repeats = true;
  return field;
}
SolverField read_by(void (*read)(const Field&, const std::string&, Solver&), SolverField field) {
  field.read = read;
  return field;
}
// Has no effect here, which the log says.
SolverField unused(const char* name, const char* why) {
  return {name, [why](const Field& f, const std::string& owner, Solver& s) {
            const std::string note = fmt::format("{}: {} is not used: {}", owner, f.name, why);
            s.notes.push_back(note + in_file(f.location));
          }};
}

// Most files have both fields; one note is enough.
void note_devices(const Field& field, const std::string& owner, Solver& solver) {
  const char* why = "devices are chosen with --devices";
  const bool noted =
      std::any_of(solver.notes.begin(), solver.notes.end(),
                  [&](const std::string& note) { return note.find(why) != std::string::npos; });
  if (!noted) unused("", why).read(field, owner, solver);
}

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// By name in any case, as old files have "ADAM", or by the number of the old enum.
void read_type(const Field& field, const std::string& owner, Solver& solver) {
  static const std::vector<std::string> old_numbers{"SGD",     "Nesterov", "AdaGrad",
                                                    "RMSProp", "AdaDelta", "Adam"};
  const std::string written = text_of(field, owner);
  int64_t index = -1;
  if (field.name == "solver_type" && parse_integer(written, &index) && index >= 0 &&
      index < static_cast<int64_t>(old_numbers.size())) {
    solver.type = old_numbers[size_t(index)];
    return;
  }
  const std::vector<std::string>& known = solver_types();
  const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& type) {
    return lower_case(type) == lower_case(written);
  });
  solver.type = found != known.end() ? *found : word_of(field, owner, known);
}

// Caffe's -1: no clipping.
void read_clip(const Field& field, const std::string& owner, Solver& solver) {
  const double clip = number_of(field, owner);
  if (clip == 0) throw wrong_value(field, owner, "above 0, or -1 for no clipping");
  solver.clip_gradients = std::max(0.0, clip);
}

void read_step_value(const Field& field, const std::string& owner, Solver& solver) {
  const int64_t value = integer_of(field, owner);
  if (!solver.step_values.empty() && value <= solver.step_values.back()) {
    throw wrong_value(field, owner,
                      fmt::format("above the stepvalue before it, {}", solver.step_values.back()));
  }
  solver.step_values.push_back(value);
}

void read_test_steps(const Field& field, const std::string& owner, Solver& solver) {
  const int64_t steps = integer_of(field, owner);
  if (steps < 0) throw wrong_value(field, owner, "at least 0");
  if (solver.test_steps == 0) solver.test_steps = steps;  // of the first test net
}

void read_test_state(const Field& field, const std::string& owner, Solver& solver) {
  read_value(field, owner, solver.test_states);
  if (solver.test_states.size() == 2) {
    solver.notes.push_back(fmt::format(
        "solver: only the first test_state is tested (stages: {}); test another one with "
        "--test-stage{}",
        fmt::join(solver.test_states.front().stages, ", "), in_file(field.location)));
  }
}

void read_test_net(const Field& field, const std::string& owner, Solver& solver) {
  read_value(field, owner, solver.test_nets);
  if (solver.test_nets.size() == 2) {
    solver.notes.push_back(fmt::format("solver: only the first test_net is tested ('{}'){}",
                                       solver.test_nets.front(), in_file(field.location)));
  }
}

// Caffe's -1: any seed.
void read_seed(const Field& field, const std::string& owner, Solver& solver) {
  const int64_t seed = integer_of(field, owner);
  if (seed >= 0) solver.seed = static_cast<uint64_t>(seed);
}

// A net in the solver's file. train_net_param and test_net_param are each for one phase.
SolverField net_param(const char* name, int32_t phase) {
  return {name, [phase](const Field& field, const std::string& owner, Solver& solver) {
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
const MemberFields<Solver>& solver_fields() {
  using S = Solver;
  static const MemberFields<S> fields{
      read_by(read_type, member("type", &S::type)),
      {"solver_type", read_type},
      member("momentum", &S::momentum, decay),
      member("momentum2", &S::momentum2, decay),
      member("rms_decay", &S::rms_decay, decay),
      member("delta", &S::delta, above_zero),
      member("trust_coefficient", &S::trust_coefficient, above_zero),
      member("weight_decay", &S::weight_decay, not_negative),
      member("regularization_type", &S::regularization, {"L1", "L2"}),
      written_if([](const S& s) { return s.clip_gradients > 0; },
                 read_by(read_clip, member("clip_gradients", &S::clip_gradients))),
      member("iter_size", &S::micro_batches_per_step, micro_batches),
      member("lr_policy", &S::rate_policy, rate_policies()),
      member("base_lr", &S::base_rate, not_negative),
      member("gamma", &S::gamma),
      member("power", &S::power),
      member("stepsize", &S::step_size, not_negative),
      read_by(read_step_value, member("stepvalue", &S::step_values)),
      member("warmup_iter", &S::warm_up_steps, not_negative),
      written_if([](const S& s) { return s.warm_up_steps > 0; },
                 member("warmup_start_lr", &S::warm_up_rate, not_negative)),
      member("max_iter", &S::max_steps, not_negative),
      member("display", &S::display, not_negative),
      member("average_loss", &S::average_loss, at_least_one),
      member("test_interval", &S::test_interval, not_negative),
      repeated(read_by(read_test_steps, member("test_iter", &S::test_steps))),
      member("test_initialization", &S::test_initialization),
      member("snapshot", &S::snapshot, not_negative),
      member("snapshot_prefix", &S::snapshot_prefix),
      // Nets and initial weights have files of their own in a run folder, and the seed its record.
      unwritten(member("net", &S::net)),
      unwritten(member("train_net", &S::train_net)),
      {"test_net", read_test_net, {}, true},
      net_param("net_param", -1),
      net_param("train_net_param", TANDEM_TRAIN),
      repeated(net_param("test_net_param", TANDEM_TEST)),
      unwritten(member("train_state", &S::train_state)),
      {"test_state", read_test_state, {}, true},
      unwritten(member("weights", &S::weights)),
      {"random_seed", read_seed},
      unused("snapshot_format", "snapshots are safetensors files"),
      unused("snapshot_diff", "gradients are not saved"),
      unused("snapshot_after_train", "the last step is always saved"),
      {"solver_mode", note_devices},
      {"device_id", note_devices},
      unused("test_compute_loss", "the loss of the test phase is always shown"),
      unused("debug_info", "there is no such output"),
      unused("layer_wise_reduce", "the strategy decides it"),
      unused("show_per_class_result", "the report has each class"),
      unused("solver_data_type", "weights and their updates are float32"),
      unused("store_blobs_in_old_format", "weights are safetensors files"),
      unused("test_and_snapshot_last_epochs", "the last step is always saved"),
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
    refuse_if(has("net") && has("train_net"), "train_net",
              "net and train_net both name the net to train: keep one of them");
    refuse_if(has("test_net") && !has("net") && !has("train_net"), "test_net",
              "test_net without a net to train: write net or train_net, too");
    const bool tests = has("net") || has("test_net");
    refuse_if(solver_.test_interval > 0 && has("train_net") && !tests, "test_interval",
              "test_interval is {}, but with train_net alone there is no net to test: write "
              "test_net, too, or net instead of train_net",
              solver_.test_interval);
  }

  void policy() const {
    const std::string& policy = solver_.rate_policy;
    const bool drops = policy == "step" || policy == "multistep" || policy == "exp";
    const bool ends = policy == "poly" || policy == "cosine";
    const auto need = [&](bool is_needed, bool is_given, const char* field, const char* meaning) {
      refuse_if(is_needed && !is_given, "lr_policy", "lr_policy '{}' needs {} ({})", policy, field,
                meaning);
    };
    need(policy == "step", solver_.step_size > 0, "stepsize", "steps between two drops");
    need(policy == "multistep", !solver_.step_values.empty(), "stepvalue", "steps that drop it");
    need(drops, solver_.gamma > 0, "gamma", "above 0: the factor of each drop");
    refuse_if(policy == "inv" && solver_.gamma < 0, "gamma",
              "gamma is {}, but must be at least 0 with lr_policy 'inv'", solver_.gamma);
    need(ends, solver_.max_steps > 0, "max_iter", "where the rate reaches zero");
    refuse_if(has("warmup_start_lr") && solver_.warm_up_steps == 0, "warmup_start_lr",
              "warmup_start_lr needs warmup_iter (steps until the rate is base_lr)");
  }

  // Fields that are of another type or policy. Files that runs write have all of them.
  [[nodiscard]] std::vector<std::string> unused_fields() const {
    struct Use {
      const char *field, *kind;
      std::vector<std::string> users;
    };
    static const std::vector<Use> uses{
        {"momentum2", "type", {"Adam", "AdamW"}},
        {"rms_decay", "type", {"RMSProp"}},
        {"delta", "type", {"AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW"}},
        {"trust_coefficient", "type", {"LARS"}},
        {"gamma", "lr_policy", {"step", "exp", "inv", "multistep", "sigmoid"}},
        {"power", "lr_policy", {"inv", "poly"}},
        {"stepsize", "lr_policy", {"step", "sigmoid"}},
        {"stepvalue", "lr_policy", {"multistep"}},
    };
    std::vector<std::string> notes;
    for (const auto& [field, kind, users] : uses) {
      const bool is_type = kind == std::string_view("type");
      const std::string& chosen = is_type ? solver_.type : solver_.rate_policy;
      if (!has(field) || is_among(users, chosen) || is_usual(field)) continue;
      notes.push_back(fmt::format("solver: {} is not used: {} '{}' has none{}", field, kind, chosen,
                                  in_file(written_.at(field))));
    }
    return notes;
  }

  void rule() const {
    refuse_if(has("type") && has("solver_type"), "solver_type",
              "type and solver_type both say the rule: keep one of them");
    const std::string& type = solver_.type;
    refuse_if((type == "AdaGrad" || type == "RMSProp") && solver_.momentum > 0, "momentum",
              "momentum is {}, but must be 0: type '{}' has none", solver_.momentum, type);
    refuse_if(type == "AdaDelta" && solver_.momentum == 0, "type",
              "type 'AdaDelta' needs momentum (above 0: how its mean squares decay, e.g. 0.95)");
    refuse_if(type == "AdamW" && solver_.regularization == "L1", "regularization_type",
              "regularization_type is 'L1', but type 'AdamW' decays the weights themselves, which "
              "is neither L1 nor L2: use 'Adam' for L1");
  }

 private:
  [[nodiscard]] bool has(const std::string& field) const { return written_.contains(field); }
  [[nodiscard]] bool is_usual(std::string_view field) const {
    Message mine, usual;
    for (const SolverField& known : solver_fields()) {
      if (field != known.name) continue;
      known.write(solver_, mine);
      known.write(Solver{}, usual);
    }
    return write_text_format(mine) == write_text_format(usual);
  }
  // An Error with the location of the field, or the file for a missing one.
  template <class... Arguments>
  void refuse_if(bool is_wrong, const char* field, fmt::format_string<const Arguments&...> reason,
                 const Arguments&... arguments) const {
    if (!is_wrong) return;
    const auto found = written_.find(field);
    throw error("solver: {}{}", fmt::format(reason, arguments...),
                in_file(found != written_.end() ? found->second : Location{solver_.file, 0, 0}));
  }

  const Solver& solver_;
  const std::map<std::string, Location>& written_;
};

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
  if (message.find("layer") != nullptr || message.find("layers") != nullptr) {
    throw error("solver '{}' is a net, not a solver: give it to --net", solver.file);
  }
  std::map<std::string, Location> written;
  const auto read_all = [&](const Message& from, bool is_file) {
    std::vector<FieldReader> readers;
    for (const SolverField& known : solver_fields()) {
      readers.push_back({known.name,
                         [&](const Field& field) {
                           const bool is_type = field.name == "solver_type";
                           if (is_file && changes.contains(is_type ? "type" : field.name)) return;
                           known.read(field, solver_owner, solver);
                           written[field.name] = field.location;
                         },
                         known.repeats});
    }
    read_fields(from, "field", solver_owner, readers);
  };
  read_all(message, true);
  read_all(changes_as_message(changes), false);
  const Checks checks(solver, written);
  checks.rule();
  checks.nets();
  checks.policy();
  for (std::string& note : checks.unused_fields()) solver.notes.push_back(std::move(note));
  solver.has_rate = written.contains("base_lr");
  const auto test_iters =
      std::count_if(message.fields.begin(), message.fields.end(),
                    [](const Field& field) { return field.name == "test_iter"; });
  if (test_iters > 1 && solver.test_nets.size() < 2 && solver.test_states.size() < 2) {
    solver.notes.push_back(fmt::format("solver: only the first test_iter counts ({}){}",
                                       solver.test_steps, in_file(written.at("test_iter"))));
  }
  if (written.contains("max_iter") && solver.max_steps == 0) {
    solver.notes.push_back(
        fmt::format("solver: max_iter 0 is no length: the usual one is taken (--epochs, --steps){}",
                    in_file(written.at("max_iter"))));
  }
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
  read_type({"type", type, true, nullptr, {"--solver-type", 0, 0}}, solver_owner, solver);
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
  write_fields(solver, solver_fields(), message);
  return write_text_format(message);
}

}  // namespace tandem
