#include "core/model/solver_definition.h"

#include "core/base/strings.h"
#include "core/model/fields.h"
#include "core/model/solver_checks.h"
#include "core/model/solver_fields.h"

namespace tandem {

namespace {

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

// A change replaces what the file says, all of it where a field repeats.
void read_fields(const Message& message, const std::map<std::string, std::string>& changes,
                 SolverDefinition& solver) {
  std::vector<std::string> known;
  for (const auto& [name, reader] : solver_fields()) known.push_back(name);
  const Message changed = changes_as_message(changes);
  std::map<std::string, Location> written;
  for (const Message* part : {&message, &changed}) {
    require_known(*part, known, "field", "solver");
    for (const Field& field : part->fields) {
      const std::string name = field.name == "solver_type" ? "type" : field.name;
      if (part == &message && changes.contains(name)) continue;
      solver_fields().at(field.name)(field, solver);
      written[field.name] = field.location;
    }
  }
  if (written.contains("type") && written.contains("solver_type")) {
    throw error("solver: type and solver_type both say the rule: keep one of them{}",
                in_place(written.at("solver_type")));
  }
  check_solver(solver, written);
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

SolverDefinition read_solver(const std::filesystem::path& path,
                             const std::map<std::string, std::string>& changes) {
  SolverDefinition solver;
  solver.file = path.string();
  read_fields(read_text_format(path), changes, solver);
  return solver;
}

SolverDefinition default_solver(const std::string& type,
                                const std::map<std::string, std::string>& changes) {
  SolverDefinition solver;
  read_solver_type({"type", type, true, nullptr, {"--solver-type", 0, 0}}, solver);
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

}  // namespace tandem
