// The exchange under all-gathers and reduce-scatters of parts that devices use one by one: each
// device receives a part from each other device. In turn k device d receives from device d + k
// (mod N), so that in each turn every device sends once and receives once, and parts arrive in one
// fixed order. Turn 0 is the device's own part, which does not travel.
#pragma once

#include <functional>
#include <string>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/strategies/common/stages.h"

namespace tandem {

struct AllToAll {
  std::string what;  // in the labels of its tasks: "send fc1"
  Stage stage = stages::send_activations;
  int layer = -1;
  // Where the part of `source` for `target` lies on both.
  std::function<CopySegment(int source, int target)> part{};
  // Appends the tasks of `target` that need this part; `source` may be `target`. May be empty.
  std::function<void(int source, int target)> use{};
};

inline void emit_all_to_all(PlanBuilder& builder, const AllToAll& exchange) {
  for (int turn = 0; turn < builder.devices(); ++turn) {
    for (int target = 0; target < builder.devices(); ++target) {
      const int source = (target + turn) % builder.devices();
      if (source != target) {
        builder.emit_transfer(exchange.what, exchange.stage, exchange.layer, source, target,
                              {exchange.part(source, target)}, When::every_micro_batch,
                              full_duplex);
      }
      if (exchange.use) exchange.use(source, target);
    }
  }
}

}  // namespace tandem
