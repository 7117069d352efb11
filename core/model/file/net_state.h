// The state in which a net is built, Caffe's NetState: a phase, a level and stages. The rules of a
// layer (NetStateRule) say in which states it is part of the net.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/file/text_format.h"
#include "include/tandem/net.h"

namespace tandem {

struct StateRule {
  std::optional<int32_t> phase;
  std::optional<int64_t> minimum_level, maximum_level;  // both inclusive
  std::vector<std::string> stages, excluded_stages;     // not_stage
  // Every condition must hold: all of the stages are set, none of the excluded ones.
  [[nodiscard]] bool holds(int32_t in_phase, const NetState& state = {}) const;
};

// From `include { ... }`, `exclude { ... }`; Error with near names for an unknown field.
void read_value(const Field& field, const std::string& owner, StateRule& rule);
void write_value(Message& to, const char* name, const StateRule& rule);
// From `train_state { ... }` of a solver or `state { ... }` of a net; a phase in it is ignored.
void read_value(const Field& field, const std::string& owner, NetState& state);
// None for the default state.
void write_value(Message& to, const char* name, const NetState& state);

}  // namespace tandem
