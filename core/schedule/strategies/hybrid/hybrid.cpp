// docs/design/strategies.md §5: conv devices and FC devices. Activations go from one to the other,
// errors and the last convolution's gradient come back; each kind of device sums and updates its
// own weights, layer by layer, while the next layer is computed.
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/group_reduce.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"
#include "core/schedule/strategies/hybrid/hybrid_roles.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

namespace {

// Rows of every device: conv devices share the batch, an FC device has those of its conv devices.
std::vector<Interval> rows_of(const HybridRoles& roles, int64_t batch) {
  const int conv = static_cast<int>(roles.conv.size());
  std::vector<Interval> rows;
  for (int device = 0; device < conv; ++device) rows.push_back(share(batch, conv, device));
  const size_t each = roles.conv.size() / roles.fc.size();
  for (size_t i = 0; i < roles.fc.size(); ++i) {
    rows.push_back({rows[i * each].begin, rows[(i + 1) * each - 1].end});
  }
  return rows;
}

// "device 0", "devices 0 to 2"
std::string to_text(const std::vector<int>& devices) {
  return devices.size() == 1 ? fmt::format("device {}", devices.front())
                             : fmt::format("devices {} to {}", devices.front(), devices.back());
}

class Hybrid {
 public:
  Hybrid(const StrategyInputs& inputs, HybridRoles roles)
      : roles_(std::move(roles)),
        builder_(inputs, "hybrid", PlanBuilder::Purpose::training,
                 rows_of(roles_, inputs.net->batch)),
        net_(builder_.net()),
        updates_(builder_),
        boundary_layer_(net_.layers[size_t(roles_.last_conv)]),
        conv_ring_(builder_, device_order(inputs, roles_.conv)),
        fc_ring_(builder_, device_order(inputs, roles_.fc)) {}

  Plan build() {
    if (roles_.extends_memory) updates_.extend(roles_.fc);
    note();
    emit_inputs();
    emit_forward();
    emit_backward_fc();
    send_back_gradients();
    emit_backward_conv();
    updates_.finish();
    return builder_.take();
  }

 private:
  void note() {
    builder_.plan().notes.push_back(fmt::format(
        "convolutions up to '{}' on {}; its backward pass and what lies behind it on {}",
        boundary_layer_.name, to_text(roles_.conv), to_text(roles_.fc)));
    if (roles_.extends_memory) {
      builder_.plan().notes.push_back(
          fmt::format("the solver's state of {} in extended memory", to_text(roles_.fc)));
    }
    builder_.plan().roles.fc_memory = builder_.inputs().options.roles.fc_memory;
    builder_.plan().roles.conv_devices = static_cast<int>(roles_.conv.size());
    builder_.plan().roles.fc_devices = static_cast<int>(roles_.fc.size());
    std::vector<int> conv, fc;
    std::vector<int> user(net_.weights.size(), -1);
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      for (const int weight : net_.layers[i].weights) user[size_t(weight)] = static_cast<int>(i);
    }
    for (size_t weight = 0; weight < user.size(); ++weight) {
      (user[weight] > roles_.last_conv ? fc : conv).push_back(static_cast<int>(weight));
    }
    for (const auto& [device, weights] :
         {std::pair{roles_.conv.front(), conv}, std::pair{roles_.fc.front(), fc}}) {
      for (const Interval& range : weight_ranges(net_, weights)) {
        builder_.plan().weights_at.push_back({device, range});
      }
    }
  }

  // FC devices take what the step and the losses need; the data, where one of their layers does.
  [[nodiscard]] bool fc_reads_data() const {
    for (size_t i = size_t(roles_.last_conv); i < net_.layers.size(); ++i) {
      for (const int input : net_.layers[i].inputs) {
        if (net_.tensors[size_t(input)].producer < 0 && input != net_.label) return true;
      }
    }
    return false;
  }
  void emit_inputs() {
    for (const int device : roles_.conv) builder_.emit_input(device);
    for (const int device : roles_.fc) builder_.emit_input(device, fc_reads_data());
  }

  void send_tensor(int tensor) {
    const std::string& name = net_.tensors[size_t(tensor)].name;
    for (size_t i = 0; i < roles_.conv.size(); ++i) {
      const int from = roles_.conv[i], to = roles_.partner(i);
      builder_.emit_transfer(
          fmt::format("send {}", name), Stage::send_activations, roles_.last_conv, from, to,
          {{builder_.tensor(from, tensor), builder_.tensor(to, tensor, builder_.rows(from))}},
          When::every_micro_batch, full_duplex);
    }
  }

  void emit_forward() {
    for (int layer = 0; layer < roles_.last_conv; ++layer) {
      stages::emit_forward(builder_, roles_.conv, layer, StreamKind::control);
    }
    // The last convolution's input is on its way while it is computed.
    for (const int input : boundary_layer_.inputs) {
      if (net_.tensors[size_t(input)].producer >= 0 && boundary_layer_.has_backward())
        send_tensor(input);
    }
    stages::emit_forward(builder_, roles_.conv, roles_.last_conv, StreamKind::control);
    for (const int output : boundary_layer_.outputs) send_tensor(output);
    const int layers = static_cast<int>(net_.layers.size());
    for (int layer = roles_.last_conv + 1; layer < layers; ++layer) {
      stages::emit_forward(builder_, roles_.fc, layer, StreamKind::control);
    }
    stages::emit_report(builder_, roles_.fc, true, StreamKind::control);
    std::vector<int> devices = roles_.fc;
    devices.insert(devices.end(), roles_.conv.begin(), roles_.conv.end());
    updates_.emit_found_inf(roles_.fc.front(), devices);
  }

  // What a layer has completed is summed over the ring and updated by each of its devices.
  void emit_layer_update(int layer, RingGroup& ring, Stage sending, Stage updating) {
    const std::vector<int> weights = weights_completed_by(net_, layer);
    if (weights.empty()) return;
    const std::string& name = net_.layers[size_t(layer)].name;
    ring.emit_all_reduce({name + " gradients", layer, sending, updating},
                         weight_ranges(net_, weights));
    for (int i = 0; i < ring.size(); ++i) updates_.add(ring.member(i), updating, name, weights);
  }

  void emit_backward_fc() {
    for (int layer = static_cast<int>(net_.layers.size()); layer-- > roles_.last_conv;) {
      stages::emit_backward(builder_, roles_.fc, layer, Stage::backward_fc, StreamKind::control);
      emit_layer_update(layer, fc_ring_, Stage::send_fc_gradients, Stage::update_fc);
    }
  }

  // The averaged gradient of the last convolution, and the gradients of its inputs.
  void send_back_gradients() {
    const std::vector<int> weights = weights_completed_by(net_, roles_.last_conv);
    for (size_t i = 0; i < roles_.conv.size(); ++i) {
      const int from = roles_.partner(i), to = roles_.conv[i];
      std::vector<CopySegment> inputs;
      for (size_t number = 0; number < boundary_layer_.inputs.size(); ++number) {
        const int input = boundary_layer_.inputs[number];
        const bool is_wanted = boundary_layer_.wants_backward_data &&
                               boundary_layer_.may_take_gradient(number) &&
                               net_.tensors[size_t(input)].has_gradient;
        if (!is_wanted) continue;
        inputs.push_back({builder_.tensor_gradient(from, input, builder_.rows(to)),
                          builder_.tensor_gradient(to, input)});
      }
      if (!inputs.empty()) {
        builder_.emit_transfer(fmt::format("send {} activation gradients", boundary_layer_.name),
                               Stage::send_activation_gradients, roles_.last_conv, from, to,
                               std::move(inputs), When::every_micro_batch, full_duplex);
      }
      if (weights.empty()) continue;
      std::vector<CopySegment> segments;
      for (const Interval& range : weight_ranges(net_, weights)) {
        segments.push_back({builder_.gradients(from, range), builder_.gradients(to, range)});
      }
      builder_.emit_transfer(fmt::format("send averaged {} gradients", boundary_layer_.name),
                             Stage::send_conv_gradients, roles_.last_conv, from, to,
                             std::move(segments), When::last_micro_batch, full_duplex);
    }
    for (const int device : roles_.conv) {
      updates_.add(device, Stage::update_conv, boundary_layer_.name, weights);
    }
  }

  void emit_backward_conv() {
    for (int layer = roles_.last_conv; layer-- > 0;) {
      stages::emit_backward(builder_, roles_.conv, layer, Stage::backward_conv,
                            StreamKind::control);
      emit_layer_update(layer, conv_ring_, Stage::send_conv_gradients, Stage::update_conv);
    }
  }

  HybridRoles roles_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  const Layer& boundary_layer_;
  RingGroup conv_ring_, fc_ring_;
};

}  // namespace

Plan build_hybrid(const StrategyInputs& inputs) {
  return Hybrid(inputs, hybrid_roles(inputs)).build();
}

}  // namespace tandem
