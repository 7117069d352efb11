#include "core/schedule/execution/update_rule.h"

#include "core/base/error.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/memory_plan.h"

namespace tandem {
namespace {

struct KnownRule {
  const char* type;
  int32_t rule;
  int states;
};

constexpr KnownRule known_rules[] = {
    {"SGD", TANDEM_UPDATE_SGD, 1},           {"Nesterov", TANDEM_UPDATE_NESTEROV, 1},
    {"AdaGrad", TANDEM_UPDATE_ADAGRAD, 1},   {"RMSProp", TANDEM_UPDATE_RMSPROP, 1},
    {"AdaDelta", TANDEM_UPDATE_ADADELTA, 2}, {"Adam", TANDEM_UPDATE_ADAM, 2},
    {"AdamW", TANDEM_UPDATE_ADAMW, 2},       {"LARS", TANDEM_UPDATE_LARS, 1},
};

}  // namespace

UpdateRule make_update_rule(const SolverDefinition& solver) {
  for (const KnownRule& known : known_rules) {
    if (solver.type != known.type) continue;
    UpdateRule rule;
    rule.rule = known.rule;
    rule.states = known.states;
    rule.momentum = static_cast<float>(solver.momentum);
    const auto decay = static_cast<float>(solver.weight_decay);
    (solver.regularization == "L1" ? rule.l1_decay : rule.weight_decay) = decay;
    rule.momentum2 = solver.type == "RMSProp" ? solver.rms_decay : solver.momentum2;
    rule.delta = solver.delta;
    rule.clip = solver.clip_gradients;
    rule.trust_coefficient = solver.trust_coefficient;
    rule.micro_batches = static_cast<int>(solver.micro_batches_per_step);
    return rule;
  }
  throw error("solver type '{}' has no update rule", solver.type);
}

tandem_update average_of(const tandem_update& weights, double decay) {
  tandem_update average{};
  average.struct_size = sizeof average;
  average.rule = TANDEM_UPDATE_AVERAGE;
  average.count = weights.count;
  average.weights = weights.weights;
  average.gradient = weights.weights;  // not used
  average.state = weights.state + weights.state_count - 1;
  average.state_count = 1;
  average.momentum = static_cast<float>(decay);
  average.gradient_scale = 1;
  average.step = weights.step;
  average.found_inf = weights.found_inf;
  return average;
}

namespace {

bool follows(const Region& region, const Region& before, int64_t gap) {
  return region.buffer == before.buffer && region.offset == before.offset + before.bytes + gap;
}

bool is_whole(const Net& net, const ArrayUpdate& array) {
  return array.weights.bytes == buffers::bytes_of(net.weight(array.weight)).count();
}

bool can_be_merged(const Net& net, const ArrayUpdate& before, const ArrayUpdate& array) {
  const int64_t gap = array.weights.offset - before.weights.offset - before.weights.bytes;
  const WeightArray& a = net.weight(before.weight);
  const WeightArray& b = net.weight(array.weight);
  return gap >= 0 && gap < memory_alignment && follows(array.weights, before.weights, gap) &&
         follows(array.gradient, before.gradient, gap) && follows(array.state, before.state, gap) &&
         array.state_stride == before.state_stride && a.rate_multiplier == b.rate_multiplier &&
         a.decay_multiplier == b.decay_multiplier;
}

}  // namespace

std::vector<ArrayUpdate> merged_updates(const Net& net, const Plan& plan,
                                        const std::vector<ArrayUpdate>& arrays, bool merges) {
  std::vector<ArrayUpdate> result;
  bool last_is_whole = false;
  for (ArrayUpdate array : arrays) {
    for (Region* region : {&array.weights, &array.gradient, &array.state}) {
      region->bytes = plan.bytes(*region);
    }
    if (!net.weight(array.weight).trained() || array.weights.bytes == 0) continue;
    const bool both_are_whole = last_is_whole && is_whole(net, array);
    last_is_whole = is_whole(net, array);
    if (merges && both_are_whole && can_be_merged(net, result.back(), array)) {
      ArrayUpdate& last = result.back();
      last.weights.bytes = array.weights.offset + array.weights.bytes - last.weights.offset;
      last.gradient.bytes = last.state.bytes = last.weights.bytes;
    } else {
      result.push_back(array);
    }
  }
  return result;
}

}  // namespace tandem
