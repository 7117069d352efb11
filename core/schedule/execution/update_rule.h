// What a solver's update needs besides the plan: the rule and its constants, and which arrays one
// call updates. The rate of each step is in tandem_step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/file/solver_definition.h"
#include "core/model/net/net.h"
#include "core/schedule/plan/plan.h"
#include "plugins/abi.h"

namespace tandem {

struct UpdateRule {
  int32_t rule = TANDEM_UPDATE_SGD;
  float momentum = 0, weight_decay = 0;
  int states = 1;  // arrays of the weights' size in the state buffer
  float l1_decay = 0;
  double momentum2 = 0, delta = 0;
  double clip = 0;  // 0: gradients are not clipped
  double trust_coefficient = 0;
  // Of a moving average of the weights, which is the last of the states; 0: none.
  double average_decay = 0;
  int micro_batches = 1;  // iter_size: the gradient is the mean over so many

  // Adds the average to the states.
  void keep_average(double decay) {
    average_decay = decay;
    ++states;
  }
  // The update reads its arrays' norms.
  [[nodiscard]] bool needs_norms() const { return clip > 0 || rule == TANDEM_UPDATE_LARS; }
};

// Error for a type that is none of solver_types().
[[nodiscard]] UpdateRule make_update_rule(const SolverDefinition& solver);

// The update of the average of the weights, which follows that of the weights. It is their last
// state; the arrays are those of `weights`.
[[nodiscard]] tandem_update average_of(const tandem_update& weights, double decay);

// Joins updates of neighboring weight arrays, so that one call updates them all; every element is
// updated by the same rule and with the same bits as before.
// Returns the updates of the trained arrays that are not empty, with their sizes in bytes filled
// in. Neighbors with one rule are one update, unless each array has a rate of its own (`merges` is
// false, as for LARS). Only whole arrays are merged: what lies between them is padding, and not
// another device's part.
[[nodiscard]] std::vector<ArrayUpdate> merged_updates(const Net& net, const Plan& plan,
                                                      const std::vector<ArrayUpdate>& arrays,
                                                      bool merges);

}  // namespace tandem
