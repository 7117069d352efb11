#include "core/model/net_state.h"

#include <algorithm>

#include "core/model/definition.h"
#include "core/model/fields.h"

namespace tandem {

namespace {

bool is_set(const NetState& state, const std::string& stage) {
  return std::find(state.stages.begin(), state.stages.end(), stage) != state.stages.end();
}

// As protobuf merges two messages: stages are appended, a given level replaces the other.
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
  const auto level = [&](const char* name, std::optional<int64_t>* target) {
    return FieldReader{name, [&owner, target](const Field& f) { *target = integer_of(f, owner); }};
  };
  read_fields(block_of(field, owner), "field of " + field.name, owner,
              {{"phase", [&](const Field& f) { rule.phase = phase_of(f, owner); }},
               level("min_level", &rule.minimum_level),
               level("max_level", &rule.maximum_level),
               {"stage", [&](const Field& f) { rule.stages.push_back(text_of(f, owner)); }, true},
               {"not_stage",
                [&](const Field& f) { rule.excluded_stages.push_back(text_of(f, owner)); }, true}});
  return rule;
}

NetState read_state(const Field& field, const std::string& owner) {
  NetState state;
  read_fields(
      block_of(field, owner), "field of " + field.name, owner,
      {{"phase", [&](const Field& f) { (void)phase_of(f, owner); }},
       {"level", [&](const Field& f) { state.level = integer_of(f, owner); }},
       {"stage", [&](const Field& f) { state.stages.push_back(text_of(f, owner)); }, true}});
  return state;
}

NetDefinition in_states(const NetDefinition& net, const NetState& training,
                        const NetState& testing) {
  NetDefinition result = net;
  result.layers.clear();
  result.state = {};
  const NetState train = sum(net.state, training), test = sum(net.state, testing);
  for (LayerDefinition layer : net.layers) {
    const bool trains = layer.in_phase(TANDEM_TRAIN, train);
    const bool tests = layer.in_phase(TANDEM_TEST, test);
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
