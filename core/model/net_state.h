// The state in which a net is built, Caffe's NetState: a phase, a level and stages. The rules of a
// layer (NetStateRule) say in which states it is part of the net. in_states() applies all rules
// once; later code knows phases only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/text_format.h"
#include "include/tandem/net.h"

namespace tandem {

struct LayerDefinition;
struct NetDefinition;

struct StateRule {
  std::optional<int32_t> phase;
  std::optional<int64_t> minimum_level, maximum_level;  // both inclusive
  std::vector<std::string> stages, excluded_stages;     // not_stage
  // Every condition must hold: all of the stages are set, none of the excluded ones.
  [[nodiscard]] bool holds(int32_t in_phase, const NetState& state = {}) const;
};

// From `include { ... }`, `exclude { ... }`; Error with near names for an unknown field.
[[nodiscard]] StateRule read_rule(const Field& field, const std::string& owner);
// From `train_state { ... }` of a solver or `state { ... }` of a net; a phase in it is ignored.
[[nodiscard]] NetState read_state(const Field& field, const std::string& owner);

// The net whose training phase is built in one state and whose testing phase in the other. A layer
// that is in neither is left out. The rules of the others name at most a phase.
[[nodiscard]] NetDefinition in_states(const NetDefinition& net, const NetState& training,
                                      const NetState& testing);

// One net of two files, as a solver's `train_net` and `test_net`: the layers of the first train,
// those of the second test. Layers of one name share their weights.
[[nodiscard]] NetDefinition joined(const NetDefinition& training, const NetDefinition& testing);

// The layer in these phases only; its own rules are dropped.
[[nodiscard]] LayerDefinition kept_to(LayerDefinition layer, bool trains, bool tests);

}  // namespace tandem
