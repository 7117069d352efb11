// The strategy `two_phase` (docs/design/strategies.md §1): the gradients of the FC part are sent,
// added and applied during the backward pass of the convolutions. With hidden broadcast the new FC
// weights are sent then, too, and those of the conv part layer by layer, in the order in which the
// next forward pass needs them.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/strategies/common/strategy.h"
#include "core/schedule/strategies/data_parallel/parts.h"

namespace tandem {

struct TwoPhaseOptions : PartsOptions {
  bool hidden_broadcast = true;
};
[[nodiscard]] const OptionTable<TwoPhaseOptions>& two_phase_options();

[[nodiscard]] Strategy two_phase_strategy();

// The parts that the options name, else those with the shortest simulated step of two_phase. A net
// with a single layer of trained weights is all FC part.
struct ChosenParts {
  Parts parts;
  std::string split = "auto";      // the layer's name; auto: there was none to choose
  std::vector<std::string> notes;  // how it was chosen, what the AlexNet-like test says
};
// Errors: parts_at()'s.
[[nodiscard]] ChosenParts choose_parts(const StrategyInputs& inputs,
                                       const TwoPhaseOptions& options);

}  // namespace tandem
