// An all-reduce among some of the devices, as copies and sums in one fixed order: partial sums
// travel once around the ring of the group, then the sums do. Every member ends with the same bits.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/plan_builder.h"

namespace tandem::group {

// What a reduction is of and how its tasks are shown.
struct Reduction {
  std::string what;  // "conv1 gradients"
  int layer = -1;
  Stage sending = Stage::send_conv_gradients, adding = Stage::update_conv;
};

// The gradients in these ranges become, on every member, their sum over the members. Large ranges
// travel in as many parts as there are members, each of which begins at another one. Nothing for a
// group of one.
void emit_all_reduce(PlanBuilder& builder, const std::vector<int>& members,
                     const Reduction& reduction, const std::vector<WeightRange>& ranges);

}  // namespace tandem::group
