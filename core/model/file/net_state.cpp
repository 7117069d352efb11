#include "core/model/file/net_state.h"

#include <algorithm>

#include "core/model/file/fields.h"

namespace tandem {

namespace {

bool is_set(const NetState& state, const std::string& stage) {
  return std::find(state.stages.begin(), state.stages.end(), stage) != state.stages.end();
}

}  // namespace

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

}  // namespace tandem
