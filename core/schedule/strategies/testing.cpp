// Forward only, data-parallel: the weights go to every device first; the scalars are summed on
// device 0, and the class scores of the whole batch come together on the host.
#include <fmt/format.h>

#include "core/schedule/buffers.h"
#include "core/schedule/strategies/master.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

namespace {

void emit_predictions(PlanBuilder& builder) {
  const Net& net = builder.net();
  if (net.prediction < 0) return;
  const Shape& shape = net.tensors[size_t(net.prediction)].shape;
  const int64_t row_bytes = element_count(shape) / net.batch * 4;
  const int target = builder.buffer(
      {buffers::predictions, TANDEM_HOST, BufferKind::persistent, net.batch * row_bytes, 2, {}});
  for (int device = 0; device < builder.devices(); ++device) {
    const Region source = builder.tensor(device, net.prediction);
    builder.emit_copy(fmt::format("copy predictions @{}", device), Stage::report, -1,
                      {{device, StreamKind::communication}},
                      {{source, {target, builder.rows(device).begin * row_bytes, source.bytes}}});
  }
}

}  // namespace

Plan build_testing(const StrategyInputs& inputs) {
  PlanBuilder builder(inputs, "testing", PlanBuilder::Purpose::testing);
  const Net& net = builder.net();
  master::emit_inputs(builder);
  if (net.weight_floats > 0) {
    master::emit_broadcast(builder, "weights", -1, {all_weights(net)}, When::every_batch);
  }
  const int layers = static_cast<int>(net.layers.size());
  for (int layer = 0; layer < layers; ++layer) {
    master::emit_forward(builder, layer);
    // Before a later layer can change the scores in place.
    if (net.prediction >= 0 && net.tensors[size_t(net.prediction)].producer == layer) {
      emit_predictions(builder);
    }
  }
  master::emit_report(builder, false);
  return builder.take();
}

}  // namespace tandem
