#include "core/schedule/strategies/strategies.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/strategies/common/stages.h"

namespace tandem {
namespace {

// The weights to every device, from where the training plan has left them. Nothing changes them in
// an evaluation.
void emit_weights(PlanBuilder& builder) {
  const Net& net = builder.net();
  const std::vector<Placement>& places = builder.inputs().weights_at;
  if (net.weight_floats == 0) return;
  if (places.empty()) {
    return stages::emit_broadcast(builder, "weights", -1, {all_weights(net)}, When::micro_batch_0);
  }
  std::map<int, std::vector<Interval>> ranges;  // by device
  for (const Placement& place : places) ranges[place.device].push_back(place.interval);
  for (const auto& [source, of_source] : ranges) {
    for (int target = 0; target < builder.devices(); ++target) {
      if (target == source) continue;
      builder.emit_transfer("broadcast weights", stages::broadcast, -1, source, target,
                            builder.copies(&PlanRegions::weights, source, target, of_source),
                            When::micro_batch_0);
    }
  }
}

void emit_predictions(PlanBuilder& builder) {
  const Net& net = builder.net();
  if (net.prediction < 0) return;
  const int64_t row_bytes = buffers::row_bytes(net, net.prediction);
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

Plan build_testing_plan(const StrategyInputs& inputs, bool sends_weights) {
  PlanBuilder builder(inputs, testing_strategy, PlanBuilder::Purpose::testing);
  const Net& net = builder.net();
  stages::emit_inputs(builder);
  if (sends_weights) emit_weights(builder);
  const int layers = static_cast<int>(net.layers.size());
  for (int layer = 0; layer < layers; ++layer) {
    stages::emit_forward(builder, layer);
    // Before a later layer can change the scores in place.
    if (net.prediction >= 0 && net.tensor(net.prediction).producer == layer) {
      emit_predictions(builder);
    }
  }
  stages::emit_report(builder, false);
  Plan plan = builder.take();
  derive_dependencies(plan);
  validate(plan);
  return plan;
}

}  // namespace tandem
