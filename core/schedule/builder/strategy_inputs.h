// What a strategy's plan is made from: the net, the devices and links, the costs, what the solver
// needs, and the options.
#pragma once

#include <numeric>
#include <optional>
#include <vector>

#include "core/data/pixels.h"
#include "core/device/machine.h"
#include "core/model/net/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/plan/plan.h"
#include "include/tandem/strategies.h"

namespace tandem {

struct StrategyInputs {
  const Net* net = nullptr;  // of the training phase (of the testing phase for `testing`)
  int devices = 1;
  const CostTable* costs = nullptr;
  LinkSpec link;
  const Topology* topology = nullptr;  // instead of `link`; null: every pair is alike
  int solver_states = 1;               // arrays of the weights' size that the solver keeps
  bool needs_norms = false;            // the update reads its arrays' norms (LARS, clip_gradients)
  bool clips_gradients = false;  // it reads the norm of all gradients, so it waits for all of them
  int micro_batches_per_step = 1;     // iter_size
  std::vector<Placement> weights_at;  // for `testing`: of the training plan
  std::optional<PixelScale> bytes;    // pixels come as bytes; what makes floats of them
  bool recomputes = false;            // activations, as recompute.h says; not for `testing`
  StrategyOptions options;

  [[nodiscard]] std::vector<int> all_devices() const {
    std::vector<int> all(static_cast<size_t>(devices));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
};

}  // namespace tandem
