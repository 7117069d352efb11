#include "core/model/file/net_state.h"

#include <algorithm>

#include "core/model/file/fields.h"

namespace tandem {

namespace {

const MemberFields<StateRule>& rule_fields() {
  using R = StateRule;
  static const MemberFields<R> fields{
      {"phase",
       [](const Field& f, const std::string& owner, R& r) { r.phase = phase_of(f, owner); },
       [](const R& r, Message& to) {
         if (r.phase) to.add("phase", *r.phase == TANDEM_TRAIN ? "TRAIN" : "TEST");
       }},
      member("min_level", &R::minimum_level),
      member("max_level", &R::maximum_level),
      member("stage", &R::stages),
      member("not_stage", &R::excluded_stages),
  };
  return fields;
}

const MemberFields<NetState>& state_fields() {
  using S = NetState;
  static const MemberFields<S> fields{
      {"phase", [](const Field& f, const std::string& owner, S&) { (void)phase_of(f, owner); }},
      member("level", &S::level),
      member("stage", &S::stages),
  };
  return fields;
}

}  // namespace

bool StateRule::holds(int32_t in_phase, const NetState& state) const {
  if (phase && *phase != in_phase) return false;
  if (minimum_level && state.level < *minimum_level) return false;
  if (maximum_level && state.level > *maximum_level) return false;
  const auto is_set = [&state](const std::string& stage) { return is_among(state.stages, stage); };
  return std::all_of(stages.begin(), stages.end(), is_set) &&
         std::none_of(excluded_stages.begin(), excluded_stages.end(), is_set);
}

void read_value(const Field& field, const std::string& owner, StateRule& rule) {
  read_block(field, owner, rule_fields(), rule);
}
void write_value(Message& to, const char* name, const StateRule& rule) {
  write_fields(rule, rule_fields(), to.add_block(name));
}

void read_value(const Field& field, const std::string& owner, NetState& state) {
  read_block(field, owner, state_fields(), state);
}
void write_value(Message& to, const char* name, const NetState& state) {
  if (!(state == NetState{})) write_fields(state, state_fields(), to.add_block(name));
}

}  // namespace tandem
