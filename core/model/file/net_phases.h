// The net of both phases: in_states() applies all rules of layers (net_state.h) once; later code
// knows phases only.
#pragma once

#include "core/model/file/definition.h"

namespace tandem {

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
