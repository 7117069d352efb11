// docs/design/strategies.md §0, the baseline: the whole model is broadcast in one copy a device,
// and so are all gradients sent; everything waits for everything before it.
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/data_parallel/parts.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

Plan build_sequential(const StrategyInputs& inputs) {
  PlanBuilder builder(inputs, "sequential", PlanBuilder::Purpose::training);
  const Net& net = builder.net();
  // The parts only name the stages here, so that both strategies' tables can be compared.
  const Parts parts = choose_parts(inputs);
  builder.plan().split_layer = net.layers[size_t(parts.split_layer)].name;
  builder.plan().notes = parts.notes;
  std::vector<int> trained = parts.conv_weights;
  trained.insert(trained.end(), parts.fc_weights.begin(), parts.fc_weights.end());

  stages::emit_inputs(builder);
  stages::emit_broadcast(builder, "weights", -1, {all_weights(net)}, When::first_micro_batch);
  stages::emit_forward(builder);
  stages::emit_report(builder, true);
  const int layers = static_cast<int>(net.layers.size());
  stages::emit_backward(builder, parts.split_layer, layers, Stage::backward_fc);
  stages::emit_backward(builder, 0, parts.split_layer, Stage::backward_conv);
  stages::emit_reduction(builder, "gradients", {all_weights(net)}, Stage::send_conv_gradients,
                         Stage::update_conv);
  builder.emit_norms("norms @0", Stage::update_conv, 0, trained);
  builder.emit_update("update @0", Stage::update_conv, 0, trained);
  return builder.take();
}

}  // namespace tandem
