#include "core/schedule/strategies/common/all_to_all.h"

namespace tandem {

void emit_all_to_all(PlanBuilder& builder, const AllToAll& exchange) {
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
