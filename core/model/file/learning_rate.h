// The learning rate as a function of the step.
#pragma once

#include <cstdint>

#include "core/model/file/solver_definition.h"

namespace tandem {

// The rate of a step (0-based): Caffe's policies, a half cosine over max_iter steps (Loshchilov and
// Hutter: SGDR), and a linear warm-up (Goyal et al.) over the first steps.
[[nodiscard]] double learning_rate(const SolverDefinition& solver, int64_t step);

// Fits the policy's steps to a run of `share` times as many, so that drops of the rate keep their
// share of the run. The policies that follow max_iter, which stays as it is, do so by themselves.
void fit_policy(SolverDefinition& solver, double share);

// The factor of that rate where the solver's state began with step `begin` of the run. Devices
// correct the means of Adam and AdamW, which begin with 0, by the steps of the whole run, and would
// update several times too far.
[[nodiscard]] double new_state_factor(const SolverDefinition& solver, int64_t step, int64_t begin);

}  // namespace tandem
