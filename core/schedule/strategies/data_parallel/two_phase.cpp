// docs/design/strategies.md §1: the gradients of the FC part travel, are added and make their
// update while the convolutions still go backward. With hidden broadcast the new FC weights go out
// then, too, and those of the conv part layer by layer, in the order in which the next forward
// needs them.
#include <set>

#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/data_parallel/parts.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

namespace {

void broadcast_layer_by_layer(PlanBuilder& builder, const std::vector<int>& weights) {
  const Net& net = builder.net();
  std::set<int> to_send(weights.begin(), weights.end());
  for (size_t layer = 0; layer < net.layers.size(); ++layer) {
    std::vector<int> mine;
    for (const int weight : net.layers[layer].weights) {
      if (to_send.erase(weight) != 0) mine.push_back(weight);
    }
    if (mine.empty()) continue;
    stages::emit_broadcast(builder, net.layers[layer].name, static_cast<int>(layer),
                           weight_ranges(net, mine), When::last_micro_batch);
  }
}

}  // namespace

Plan build_two_phase(const StrategyInputs& inputs) {
  PlanBuilder builder(inputs, "two_phase", PlanBuilder::Purpose::training);
  const Net& net = builder.net();
  const Parts parts = choose_parts(inputs);
  builder.plan().split_layer = net.layers[size_t(parts.split_layer)].name;
  builder.plan().notes = parts.notes;
  const std::vector<Interval> fc = weight_ranges(net, parts.fc_weights);
  const std::vector<Interval> conv = weight_ranges(net, parts.conv_weights);
  const bool hidden = inputs.options.hidden_broadcast;

  stages::emit_inputs(builder);
  if (!hidden)
    stages::emit_broadcast(builder, "weights", -1, {all_weights(net)}, When::first_micro_batch);
  stages::emit_forward(builder);
  stages::emit_report(builder, true);
  const int layers = static_cast<int>(net.layers.size());
  stages::emit_backward(builder, parts.split_layer, layers, Stage::backward_fc);
  stages::emit_reduction(builder, "fc gradients", fc, Stage::send_fc_gradients, Stage::update_fc);
  builder.emit_norms("norms fc @0", Stage::update_fc, 0, parts.fc_weights);
  const auto update_fc = [&] {
    builder.emit_update("update fc @0", Stage::update_fc, 0, parts.fc_weights);
    if (hidden) stages::emit_broadcast(builder, "fc weights", -1, fc, When::last_micro_batch);
  };
  // A clipped update needs the norm of all gradients: then only the copies overlap.
  const bool waits = inputs.clips_gradients && !parts.conv_weights.empty();
  if (!waits) update_fc();
  stages::emit_backward(builder, 0, parts.split_layer, Stage::backward_conv);
  if (parts.conv_weights.empty()) return builder.take();
  stages::emit_reduction(builder, "conv gradients", conv, Stage::send_conv_gradients,
                         Stage::update_conv);
  builder.emit_norms("norms conv @0", Stage::update_conv, 0, parts.conv_weights);
  if (waits) update_fc();
  builder.emit_update("update conv @0", Stage::update_conv, 0, parts.conv_weights);
  if (hidden) broadcast_layer_by_layer(builder, parts.conv_weights);
  return builder.take();
}

}  // namespace tandem
