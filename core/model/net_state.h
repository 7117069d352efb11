// In which state a net is built, Caffe's NetState: its phase, a level and stages. Layers say by
// rules in which states they are part of the net (NetStateRule). in_states() decides all of them
// once, so that everything behind it asks for phases only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/text_format.h"

namespace tandem {

struct NetDefinition;

struct NetState {
  int64_t level = 0;
  std::vector<std::string> stages;
  friend bool operator==(const NetState&, const NetState&) = default;
};

struct StateRule {
  std::optional<int32_t> phase;
  std::optional<int64_t> minimum_level, maximum_level;  // both inclusive
  std::vector<std::string> stages, excluded_stages;     // not_stage
  // Every condition must hold: all of the stages are set, none of the excluded ones.
  [[nodiscard]] bool holds(int32_t in_phase, const NetState& state = {}) const;
};

// From `include { ... }`, `exclude { ... }`; Error with near names for an unknown field.
[[nodiscard]] StateRule read_rule(const Field& field, const std::string& owner);
// From `train_state { ... }` of a solver or `state { ... }` of a net; a phase in it is passed over.
[[nodiscard]] NetState read_state(const Field& field, const std::string& owner);

// The net when its training phase is built in the one state and its testing phase in the other: a
// layer that is in neither is left out, and the rules of the others name at most a phase.
[[nodiscard]] NetDefinition in_states(const NetDefinition& net, const NetState& training,
                                      const NetState& testing);

// One net of two files, as a solver's `train_net` and `test_net`: all layers of the one train, all
// of the other test. Layers of one name share their weights.
[[nodiscard]] NetDefinition joined(const NetDefinition& training, const NetDefinition& testing);

}  // namespace tandem
