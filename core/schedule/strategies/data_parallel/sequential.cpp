#include "core/schedule/strategies/data_parallel/sequential.h"

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/data_parallel/two_phase.h"

namespace tandem {
namespace {

Plan build_sequential(const StrategyInputs& inputs) {
  TwoPhaseOptions options;
  static_cast<PartsOptions&>(options) = parts_options().read(inputs.options);
  const auto [parts, split, notes] = choose_parts(inputs, options);
  options.split = split;
  PlanBuilder builder(inputs, "sequential", PlanBuilder::Purpose::training);
  const Net& net = builder.net();
  builder.plan().split_layer = net.layer(parts.split_layer).name;
  builder.plan().options = parts_options().write(options);
  builder.plan().notes = notes;
  std::vector<int> trained = parts.conv_weights;
  trained.insert(trained.end(), parts.fc_weights.begin(), parts.fc_weights.end());

  stages::emit_inputs(builder);
  stages::emit_broadcast(builder, "weights", -1, {all_weights(net)}, When::first_micro_batch);
  stages::emit_forward(builder);
  stages::emit_report(builder, true);
  const int layers = static_cast<int>(net.layers.size());
  stages::emit_backward(builder, parts.split_layer, layers, stages::backward_fc);
  stages::emit_backward(builder, 0, parts.split_layer, stages::backward_conv);
  stages::emit_reduction(builder, "gradients", {all_weights(net)}, stages::send_conv_gradients,
                         stages::update_conv);
  builder.emit_norms("norms @0", stages::update_conv, 0, trained);
  builder.emit_update("update @0", stages::update_conv, 0, trained);
  return builder.take();
}

}  // namespace

Strategy sequential_strategy() {
  return {.name = "sequential",
          .summary = "nothing overlaps: backward, send all gradients, update, broadcast",
          .options = parts_options().options(),
          .build = &build_sequential,
          .lossless_cases = [](int) { return std::vector<StrategyOptions>{{}}; }};
}

}  // namespace tandem
