#include "core/model/file/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem {

namespace {

double policy_rate(const SolverDefinition& solver, int64_t step) {
  const double base = solver.base_rate;
  const double gamma = solver.gamma;
  const auto at = static_cast<double>(step);
  const double done =
      std::min(1.0, at / static_cast<double>(std::max<int64_t>(1, solver.max_steps)));
  if (solver.rate_policy == "step") {
    const int64_t drops = solver.step_size > 0 ? step / solver.step_size : 0;
    return base * std::pow(gamma, static_cast<double>(drops));
  }
  if (solver.rate_policy == "exp") return base * std::pow(gamma, at);
  if (solver.rate_policy == "inv") return base * std::pow(1 + gamma * at, -solver.power);
  if (solver.rate_policy == "multistep") {
    const auto drops = std::count_if(solver.step_values.begin(), solver.step_values.end(),
                                     [step](int64_t value) { return value <= step; });
    return base * std::pow(gamma, static_cast<double>(drops));
  }
  if (solver.rate_policy == "poly") return base * std::pow(1 - done, solver.power);
  if (solver.rate_policy == "sigmoid") {
    return base / (1 + std::exp(-gamma * (at - static_cast<double>(solver.step_size))));
  }
  if (solver.rate_policy == "cosine") return base * (1 + std::cos(std::numbers::pi * done)) / 2;
  return base;
}

}  // namespace

double learning_rate(const SolverDefinition& solver, int64_t step) {
  if (step >= solver.warm_up_steps) return policy_rate(solver, step);
  const double share = static_cast<double>(step) / static_cast<double>(solver.warm_up_steps);
  return solver.warm_up_rate + (solver.base_rate - solver.warm_up_rate) * share;
}

void fit_policy(SolverDefinition& solver, double share) {
  const auto scaled = [share](int64_t at) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(at) * share));
  };
  if (solver.step_size > 0) solver.step_size = scaled(solver.step_size);
  int64_t before = 0;
  for (int64_t& at : solver.step_values) before = at = std::max(before + 1, scaled(at));
  if (solver.rate_policy == "inv" || solver.rate_policy == "sigmoid") solver.gamma /= share;
  if (solver.rate_policy == "exp") solver.gamma = std::pow(solver.gamma, 1 / share);
}

double new_state_factor(const SolverDefinition& solver, int64_t step, int64_t begin) {
  if (begin == 0 || (solver.type != "Adam" && solver.type != "AdamW")) return 1;
  const auto correction = [&](int64_t steps) {
    const auto n = static_cast<double>(steps);
    return std::sqrt(1 - std::pow(solver.momentum2, n)) / (1 - std::pow(solver.momentum, n));
  };
  return correction(step + 1 - begin) / correction(step + 1);
}

}  // namespace tandem
