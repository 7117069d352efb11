// The list of all strategies: one line each.
#include "core/schedule/strategies/asymmetric/asymmetric.h"
#include "core/schedule/strategies/data_parallel/layerwise.h"
#include "core/schedule/strategies/data_parallel/sequential.h"
#include "core/schedule/strategies/data_parallel/two_phase.h"
#include "core/schedule/strategies/fc_parallel/fc_parallel.h"
#include "core/schedule/strategies/hybrid/hybrid.h"
#include "core/schedule/strategies/mixed/mixed.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

const Strategies& built_in_strategies() {
  static const Strategies all({
      sequential_strategy(),
      two_phase_strategy(),
      layerwise_strategy(),
      hybrid_strategy(),
      asymmetric_strategy(),
      fc_parallel_strategy(),
      mixed_strategy(),
  });
  return all;
}

}  // namespace tandem
