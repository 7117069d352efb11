// The stages that strategies share: inputs, passes, the report of losses and metrics, and, where
// the root updates for all devices, the reduction to it and the broadcast from it. Each function
// appends its tasks for all devices, or for some (`members`), of which the first is the root.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"

namespace tandem::stages {

// Of docs/design/strategies.md §1, where "fc" and "conv" are the parts of a net.
constexpr Stage broadcast{1, "broadcast", "#bebada"};
constexpr Stage backward_fc{3, "backward_fc", "#fdb462"};
constexpr Stage backward_conv{4, "backward_conv", "#fb8072"};
constexpr Stage send_fc_gradients{5, "send_fc_gradients", "#b3de69"};
constexpr Stage update_fc{6, "update_fc", "#8dd3c7"};
constexpr Stage send_conv_gradients{7, "send_conv_gradients", "#ccebc5"};
constexpr Stage update_conv{8, "update_conv", "#66c2a5"};
// Where devices do different parts of a step.
constexpr Stage send_activations{14, "send_activations", "#fccde5"};
constexpr Stage send_activation_gradients{15, "send_activation_gradients", "#bc80bd"};

// Every device's rows of the batch, and the forward pass over them, layer by layer.
void emit_inputs(PlanBuilder& builder);
// `stream` carries what passes need of the whole batch.
void emit_forward(PlanBuilder& builder, StreamKind stream = StreamKind::communication);
// One layer's forward. What it needs of the whole batch comes before it: each device's statistics,
// merged on the root and broadcast.
void emit_forward(PlanBuilder& builder, int layer, StreamKind stream = StreamKind::communication);

// The scalars to the root, their sums there, and their copy to the host. With `checked` the losses
// set found_inf and the host sees it. Must come before everything else on the communication streams
// that the step's updates depend on.
void emit_report(PlanBuilder& builder, bool checked, StreamKind stream = StreamKind::communication);
// The same where devices compute different ones; the root is the first device of the first.
struct Reporters {
  std::vector<int> devices, scalars;
};
void emit_report(PlanBuilder& builder, const std::vector<Reporters>& reporters, bool checked,
                 StreamKind stream = StreamKind::communication);

// Backward through layers [first, last), from the last to the first.
void emit_backward(PlanBuilder& builder, int first, int last, Stage stage,
                   StreamKind stream = StreamKind::communication);

// The same among some of the devices.
void emit_forward(PlanBuilder& builder, const std::vector<int>& members, int layer,
                  StreamKind stream = StreamKind::communication);
// One layer's.
void emit_backward(PlanBuilder& builder, const std::vector<int>& members, int layer, Stage stage,
                   StreamKind stream = StreamKind::communication);

// The gradients in these ranges to device 0, in one copy from each device, and their sums there, in
// the order of devices. `what`: "fc gradients".
void emit_reduction(PlanBuilder& builder, const std::string& what,
                    const std::vector<Interval>& ranges, Stage sending, Stage adding);

// The weights in these ranges from device 0, in one copy to each device. `what`: "conv1". `when`:
// the first micro-batch for what begins a step, the last for what follows the update.
void emit_broadcast(PlanBuilder& builder, const std::string& what, int layer,
                    const std::vector<Interval>& ranges, When when);

}  // namespace tandem::stages
