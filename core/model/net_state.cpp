#include "core/model/net_state.h"

#include <algorithm>

#include "core/model/class_targets.h"
#include "core/model/definition.h"
#include "core/model/fields.h"

namespace tandem {

namespace {

bool is_set(const NetState& state, const std::string& stage) {
  return std::find(state.stages.begin(), state.stages.end(), stage) != state.stages.end();
}

bool is_in(const LayerDefinition& layer, int32_t phase, const NetState& state) {
  const auto holds = [&](const StateRule& rule) { return rule.holds(phase, state); };
  if (!layer.include.empty()) {
    return std::any_of(layer.include.begin(), layer.include.end(), holds);
  }
  return std::none_of(layer.exclude.begin(), layer.exclude.end(), holds);
}

// As protobuf merges two messages: stages are added, a level that is given replaces.
NetState sum(NetState state, const NetState& more) {
  if (more.level != 0) state.level = more.level;
  state.stages.insert(state.stages.end(), more.stages.begin(), more.stages.end());
  return state;
}

}  // namespace

LayerDefinition kept_to(LayerDefinition layer, bool trains, bool tests) {
  layer.include.clear();
  layer.exclude.clear();
  if (trains && tests) return layer;
  StateRule rule;
  rule.phase = trains ? TANDEM_TRAIN : TANDEM_TEST;
  layer.include.push_back(rule);
  return layer;
}

bool StateRule::holds(int32_t in_phase, const NetState& state) const {
  if (phase && *phase != in_phase) return false;
  if (minimum_level && state.level < *minimum_level) return false;
  if (maximum_level && state.level > *maximum_level) return false;
  const auto set = [&state](const std::string& stage) { return is_set(state, stage); };
  return std::all_of(stages.begin(), stages.end(), set) &&
         std::none_of(excluded_stages.begin(), excluded_stages.end(), set);
}

StateRule read_rule(const Field& field, const std::string& owner) {
  StateRule rule;
  for (const Field& part : block_of(field, owner).fields) {
    if (part.name == "phase") {
      rule.phase = phase_of(part, owner);
    } else if (part.name == "min_level") {
      rule.minimum_level = integer_of(part, owner);
    } else if (part.name == "max_level") {
      rule.maximum_level = integer_of(part, owner);
    } else if (part.name == "stage") {
      rule.stages.push_back(text_of(part, owner));
    } else if (part.name == "not_stage") {
      rule.excluded_stages.push_back(text_of(part, owner));
    } else {
      throw unknown_field(part, {"phase", "min_level", "max_level", "stage", "not_stage"},
                          "field of " + field.name, owner);
    }
  }
  return rule;
}

NetState read_state(const Field& field, const std::string& owner) {
  NetState state;
  for (const Field& part : block_of(field, owner).fields) {
    if (part.name == "level") {
      state.level = integer_of(part, owner);
    } else if (part.name == "stage") {
      state.stages.push_back(text_of(part, owner));
    } else if (part.name == "phase") {
      (void)phase_of(part, owner);
    } else {
      throw unknown_field(part, {"phase", "level", "stage"}, "field of " + field.name, owner);
    }
  }
  return state;
}

NetDefinition in_states(const NetDefinition& net, const NetState& training,
                        const NetState& testing) {
  NetDefinition result = net;
  result.layers.clear();
  result.state = {};
  const NetState train = sum(net.state, training), test = sum(net.state, testing);
  for (LayerDefinition layer : net.layers) {
    const bool trains = is_in(layer, TANDEM_TRAIN, train);
    const bool tests = is_in(layer, TANDEM_TEST, test);
    if (!trains && !tests) {
      result.left_out.push_back(std::move(layer));
      continue;
    }
    result.layers.push_back(kept_to(std::move(layer), trains, tests));
  }
  return result;
}

NetDefinition joined(const NetDefinition& training, const NetDefinition& testing) {
  NetDefinition result = training;
  result.layers.clear();
  const auto add = [&result](const NetDefinition& net, int32_t phase) {
    for (const LayerDefinition& layer : net.layers) {
      if (!layer.in_phase(phase)) continue;
      result.layers.push_back(kept_to(layer, phase == TANDEM_TRAIN, phase == TANDEM_TEST));
    }
  };
  add(training, TANDEM_TRAIN);
  add(testing, TANDEM_TEST);
  return result;
}

}  // namespace tandem
