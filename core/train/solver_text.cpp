#include "core/train/solver_text.h"

#include <fmt/format.h>

namespace tandem {

std::string write_solver(const SolverDefinition& s) {
  std::string text;
  const auto number = [&text](const char* name, double value) {
    text += fmt::format("{}: {}\n", name, value);
  };
  const auto integer = [&text](const char* name, int64_t value) {
    if (value > 0) text += fmt::format("{}: {}\n", name, value);
  };
  text += fmt::format("type: \"{}\"\nlr_policy: \"{}\"\n", s.type, s.rate_policy);
  number("base_lr", s.base_rate);
  number("gamma", s.gamma);
  number("power", s.power);
  integer("stepsize", s.step_size);
  for (const int64_t value : s.step_values) text += fmt::format("stepvalue: {}\n", value);
  number("momentum", s.momentum);
  number("weight_decay", s.weight_decay);
  text += fmt::format("regularization_type: \"{}\"\n", s.regularization);
  integer("max_iter", s.max_steps);
  integer("display", s.display);
  integer("test_interval", s.test_interval);
  integer("snapshot", s.snapshot);
  return text;
}

}  // namespace tandem
