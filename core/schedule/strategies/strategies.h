// The builders behind strategy.h, one file each: they emit the tasks; build_plan() derives the
// waits.
#pragma once

#include "core/schedule/strategies/strategy.h"

namespace tandem {

[[nodiscard]] Plan build_sequential(const StrategyInputs& inputs);
[[nodiscard]] Plan build_two_phase(const StrategyInputs& inputs);
[[nodiscard]] Plan build_layerwise(const StrategyInputs& inputs);
[[nodiscard]] std::vector<StrategyVariant> layerwise_variants(const StrategyInputs& inputs);
[[nodiscard]] Plan build_hybrid(const StrategyInputs& inputs);
[[nodiscard]] std::vector<StrategyVariant> hybrid_variants(const StrategyInputs& inputs);
[[nodiscard]] double hybrid_least_seconds(const StrategyInputs& inputs);
[[nodiscard]] Plan build_asymmetric(const StrategyInputs& inputs);
[[nodiscard]] Plan build_fc_parallel(const StrategyInputs& inputs);
[[nodiscard]] std::vector<StrategyVariant> fc_parallel_variants(const StrategyInputs& inputs);
[[nodiscard]] double fc_parallel_least_seconds(const StrategyInputs& inputs);
[[nodiscard]] Plan build_testing(const StrategyInputs& inputs);

}  // namespace tandem
