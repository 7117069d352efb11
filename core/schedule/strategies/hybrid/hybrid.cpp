#include "core/schedule/strategies/hybrid/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/ring_group.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"
#include "core/schedule/strategies/hybrid/hybrid_parts.h"

namespace tandem {
namespace {

// Who does what.
struct Roles {
  HybridParts parts;
  std::vector<int> conv, fc;    // devices; as many conv devices for each FC device
  bool extends_memory = false;  // the FC devices' solver state is in extended memory
  std::string memory;           // and with their weights and gradients there: "numa:1", a folder
  // The FC device that conv device number `i` works with.
  [[nodiscard]] int partner(size_t i) const { return fc[i / (conv.size() / fc.size())]; }
};

void choose_memory(const std::string& text, Roles& roles) {
  if (text.empty() || text == "device") return;
  roles.extends_memory = true;
  if (text == "extended") return;
  if (!text.starts_with("numa:") && text.find('/') == std::string::npos) {
    throw error(
        "--fc-memory {}: there are device, extended, numa:N (memory of NUMA node N), and a folder "
        "for a mapped file, as /mnt/memory",
        text);
  }
  roles.memory = text;
}

Roles roles_of(const StrategyInputs& inputs, const HybridOptions& options) {
  if (inputs.devices < 2) {
    throw error(
        "strategy 'hybrid' needs at least 2 devices, one for the convolutions and one for the "
        "fully connected layers: use --devices cpu:2 or more");
  }
  const Net& net = *inputs.net;
  Roles roles;
  choose_memory(options.fc_memory, roles);
  roles.parts = hybrid_parts(net);
  const auto [conv, fc] =
      choose_hybrid_pair(inputs, roles.parts, options.conv_devices, options.fc_devices);
  if (net.batch < conv) {
    throw error(
        "batch {} is smaller than the {} conv devices: every one needs at least one row, so use a "
        "batch of {} or more",
        net.batch, conv, conv);
  }
  roles.conv.resize(size_t(conv));
  roles.fc.resize(size_t(fc));
  std::iota(roles.conv.begin(), roles.conv.end(), 0);
  std::iota(roles.fc.begin(), roles.fc.end(), conv);
  return roles;
}

// Rows of every device: conv devices share the batch, an FC device has those of its conv devices.
std::vector<Interval> rows_of(const Roles& roles, int64_t batch) {
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
  Hybrid(const StrategyInputs& inputs, Roles roles)
      : roles_(std::move(roles)),
        builder_(inputs, "hybrid", PlanBuilder::Purpose::training,
                 rows_of(roles_, inputs.net->batch)),
        net_(builder_.net()),
        updates_(builder_),
        boundary_(roles_.parts.boundary),
        boundary_layer_(net_.layer(boundary_)),
        conv_ring_(builder_, device_order(inputs, roles_.conv)),
        fc_ring_(builder_, device_order(inputs, roles_.fc)) {}

  Plan build() {
    if (roles_.extends_memory) updates_.extend(roles_.fc);
    for (const int device : roles_.fc) builder_.keep_weights_in(device, roles_.memory);
    note();
    emit_inputs();
    emit_forward();
    emit_backward_conv(true);
    emit_backward_fc();
    emit_backward_conv(false);
    updates_.finish();
    return builder_.take();
  }

 private:
  void note() {
    const std::string conv_text = to_text(roles_.conv), fc_text = to_text(roles_.fc);
    std::vector<std::string>& notes = builder_.plan().notes;
    notes.push_back(
        roles_.parts.hands_over
            ? fmt::format(
                  "convolutions up to '{}' on {}; its backward pass and what comes after it on {}",
                  boundary_layer_.name, conv_text, fc_text)
            : fmt::format("layers up to '{}', which joins the last convolutions, on {}; what comes "
                          "after it on {}",
                          boundary_layer_.name, conv_text, fc_text));
    if (!conv_scalars().empty() && !fc_scalars().empty()) {
      notes.push_back(fmt::format("auxiliary heads on {}", conv_text));
    }
    if (roles_.extends_memory) {
      notes.push_back(fmt::format(
          "the solver's state{} of {} in {}",
          roles_.memory.empty() ? "" : ", weights and gradients", fc_text,
          roles_.memory.empty() ? "extended memory" : "memory of '" + roles_.memory + "'"));
    }
    std::vector<int> conv, fc;
    std::vector<int> user(net_.weights.size(), -1);
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      for (const int weight : net_.layers[i].weights) user[size_t(weight)] = static_cast<int>(i);
    }
    for (size_t weight = 0; weight < user.size(); ++weight) {
      const bool is_fc = user[weight] >= 0 && roles_.parts.forward_on_fc(user[weight]);
      (is_fc ? fc : conv).push_back(static_cast<int>(weight));
    }
    for (const auto& [device, weights] :
         {std::pair{roles_.conv.front(), conv}, std::pair{roles_.fc.front(), fc}}) {
      for (const Interval& range : weight_ranges(net_, weights)) {
        builder_.plan().weights_at.push_back({device, range});
      }
    }
  }

  [[nodiscard]] int layers() const { return static_cast<int>(net_.layers.size()); }
  // Losses and metrics that FC devices compute, and those of auxiliary heads.
  [[nodiscard]] std::vector<int> scalars_of(bool by_fc) const {
    std::vector<int> scalars;
    for (size_t i = 0; i < net_.scalars.size(); ++i) {
      if (roles_.parts.forward_on_fc(net_.scalars[i].layer) == by_fc) {
        scalars.push_back(static_cast<int>(i));
      }
    }
    return scalars;
  }
  [[nodiscard]] std::vector<int> fc_scalars() const { return scalars_of(true); }
  [[nodiscard]] std::vector<int> conv_scalars() const { return scalars_of(false); }

  // FC devices take what the step and the losses need; the data, where one of their layers does.
  [[nodiscard]] bool fc_reads_data() const {
    for (int layer = 0; layer < layers(); ++layer) {
      if (!roles_.parts.backward_on_fc(layer)) continue;
      for (const int input : net_.layer(layer).inputs) {
        if (net_.tensor(input).producer < 0 && input != net_.label) return true;
      }
    }
    return false;
  }
  void emit_inputs() {
    for (const int device : roles_.conv) builder_.emit_input(device);
    for (const int device : roles_.fc) builder_.emit_input(device, fc_reads_data());
  }

  void send_tensor(int tensor) {
    const std::string& name = net_.tensor(tensor).name;
    for (size_t i = 0; i < roles_.conv.size(); ++i) {
      const int from = roles_.conv[i], to = roles_.partner(i);
      builder_.emit_transfer(
          fmt::format("send {}", name), stages::send_activations, boundary_, from, to,
          {{builder_.tensor(from, tensor), builder_.tensor(to, tensor, builder_.rows(from))}},
          When::every_micro_batch, full_duplex);
    }
  }

  // What passes the boundary is on its way while later layers of the conv devices are computed.
  void emit_forward() {
    for (int layer = 0; layer < layers(); ++layer) {
      if (roles_.parts.forward_on_fc(layer)) continue;
      const bool is_handed_over = layer == boundary_ && roles_.parts.hands_over;
      for (const int input : net_.layer(layer).inputs) {
        const bool is_needed = is_handed_over && boundary_layer_.has_backward();
        if (is_needed && net_.tensor(input).producer >= 0) send_tensor(input);
      }
      stages::emit_forward(builder_, roles_.conv, layer, StreamKind::control);
      if (layer != boundary_) continue;
      for (const int output : roles_.parts.tensors) send_tensor(output);
    }
    for (int layer = 0; layer < layers(); ++layer) {
      if (!roles_.parts.forward_on_fc(layer)) continue;
      stages::emit_forward(builder_, roles_.fc, layer, StreamKind::control);
    }
    stages::emit_report(builder_, {{roles_.fc, fc_scalars()}, {roles_.conv, conv_scalars()}}, true,
                        StreamKind::control);
    std::vector<int> devices = roles_.fc;
    devices.insert(devices.end(), roles_.conv.begin(), roles_.conv.end());
    updates_.emit_found_inf(roles_.fc.front(), devices);
  }

  // What a layer has completed is summed over the ring and updated by each of its devices.
  void emit_layer_update(int layer, RingGroup& ring, Stage sending, Stage updating) {
    const std::vector<int> weights = weights_completed_by(net_, layer);
    if (weights.empty()) return;
    const std::string& name = net_.layer(layer).name;
    ring.emit_all_reduce({name + " gradients", layer, sending, updating},
                         weight_ranges(net_, weights));
    for (int i = 0; i < ring.size(); ++i) updates_.add(ring.member(i), updating, name, weights);
  }

  // The conv devices wait for the gradients of the last convolution's inputs. So these go before
  // the sums of the FC devices' gradients, but for sums that are done before they exist, by the
  // costs. Of the others those that the next step needs first are first.
  void emit_backward_fc() {
    std::vector<double> left(net_.layers.size() + 1, 0);  // of backward, after each layer's
    for (int layer = 0; layer < layers(); ++layer) {
      const bool is_mine = roles_.parts.backward_on_fc(layer);
      left[size_t(layer) + 1] = left[size_t(layer)] + (is_mine ? backward_seconds(layer) : 0);
    }
    std::vector<int> late;
    double sums = 0;  // seconds until the sums so far are done, after those of backward so far
    for (int layer = layers(); layer-- > 0;) {
      if (!roles_.parts.backward_on_fc(layer)) continue;
      stages::emit_backward(builder_, roles_.fc, layer, stages::backward_fc, StreamKind::control);
      sums = std::max(0.0, sums - backward_seconds(layer));
      const double seconds = sum_seconds(layer);
      if (seconds > 0 && sums + seconds > left[size_t(layer)]) {
        late.push_back(layer);
        continue;
      }
      sums += seconds;
      emit_layer_update(layer, fc_ring_, stages::send_fc_gradients, stages::update_fc);
    }
    send_input_gradients();
    const int handed_over = roles_.parts.hands_over ? boundary_ : -1;
    for (auto layer = late.rbegin(); layer != late.rend(); ++layer) {
      emit_layer_update(*layer, fc_ring_, stages::send_fc_gradients, stages::update_fc);
      if (*layer == handed_over) send_averaged_gradients();
    }
    const bool is_sent = !late.empty() && late.back() == handed_over;
    if (handed_over >= 0 && !is_sent) send_averaged_gradients();
  }

  [[nodiscard]] double backward_seconds(int layer) const {
    if (!net_.layer(layer).has_backward()) return 0;
    return builder_.inputs().costs->pass_seconds(net_, layer, LayerPass::backward,
                                                 builder_.rows(roles_.fc.front()).count());
  }
  // Of the sum of the layer's gradients around the ring of the FC devices.
  [[nodiscard]] double sum_seconds(int layer) const {
    const int64_t bytes = total_bytes(weight_ranges(net_, weights_completed_by(net_, layer)));
    if (fc_ring_.size() < 2 || bytes == 0) return 0;
    return 2 * (fc_ring_.size() - 1) *
           transfer_seconds(builder_.inputs(), fc_ring_.member(0), fc_ring_.member(1),
                            bytes / fc_ring_.size());
  }

  // The tensors before the part that FC devices run backward.
  [[nodiscard]] std::vector<int> returned_gradients() const {
    std::vector<int> tensors = roles_.parts.tensors;
    if (roles_.parts.hands_over) {
      tensors.clear();
      for (size_t number = 0; number < boundary_layer_.inputs.size(); ++number) {
        const bool is_made =
            boundary_layer_.wants_backward_data && boundary_layer_.may_take_gradient(number);
        if (is_made) tensors.push_back(boundary_layer_.inputs[number]);
      }
    }
    std::erase_if(tensors, [&](int tensor) { return !net_.tensor(tensor).has_gradient; });
    return tensors;
  }

  void send_input_gradients() {
    for (size_t i = 0; i < roles_.conv.size(); ++i) {
      const int from = roles_.partner(i), to = roles_.conv[i];
      std::vector<CopySegment> gradients;
      for (const int tensor : returned_gradients()) {
        gradients.push_back({builder_.tensor_gradient(from, tensor, builder_.rows(to)),
                             builder_.tensor_gradient(to, tensor)});
      }
      if (gradients.empty()) continue;
      builder_.emit_transfer(fmt::format("send {} activation gradients", boundary_layer_.name),
                             stages::send_activation_gradients, boundary_, from, to,
                             std::move(gradients), When::every_micro_batch, full_duplex);
    }
  }

  void send_averaged_gradients() {
    const std::vector<int> weights = weights_completed_by(net_, boundary_);
    for (size_t i = 0; i < roles_.conv.size() && !weights.empty(); ++i) {
      const int from = roles_.partner(i), to = roles_.conv[i];
      builder_.emit_transfer(
          fmt::format("send averaged {} gradients", boundary_layer_.name),
          stages::send_conv_gradients, boundary_, from, to,
          builder_.copies(&PlanRegions::gradients, from, to, weight_ranges(net_, weights)),
          When::last_micro_batch, full_duplex);
    }
    for (const int device : roles_.conv) {
      updates_.add(device, stages::update_conv, boundary_layer_.name, weights);
    }
  }

  // Of auxiliary heads, while the FC devices compute; then of the others.
  void emit_backward_conv(bool aside) {
    for (int layer = layers(); layer-- > 0;) {
      if (roles_.parts.backward_on_fc(layer) || roles_.parts.is_aside[size_t(layer)] != aside) {
        continue;
      }
      stages::emit_backward(builder_, roles_.conv, layer, stages::backward_conv,
                            StreamKind::control);
      emit_layer_update(layer, conv_ring_, stages::send_conv_gradients, stages::update_conv);
    }
  }

  Roles roles_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  int boundary_;
  const Layer& boundary_layer_;
  RingGroup conv_ring_, fc_ring_;
};

std::vector<StrategyVariant> hybrid_variants(const StrategyInputs& inputs) {
  HybridOptions options = hybrid_options().read(inputs.options);
  std::vector<StrategyVariant> result;
  if (options.conv_devices == 0 && options.fc_devices == 0) {
    for (const auto& [conv, fc] : hybrid_pairs(inputs.devices)) {
      options.conv_devices = conv;
      options.fc_devices = fc;
      result.push_back({fmt::format("{} conv, {} FC", conv, fc), hybrid_options().write(options)});
    }
  }
  if (result.empty()) result.push_back({"", inputs.options});
  return result;
}

std::vector<StrategyOptions> hybrid_lossless_cases(int devices) {
  std::vector<StrategyOptions> cases;
  for (const auto& [conv, fc] : hybrid_pairs(devices)) {
    for (const char* memory : {"", "extended"}) {
      cases.push_back(hybrid_options().write({conv, fc, memory}));
    }
  }
  return cases;
}

double hybrid_least_seconds(const StrategyInputs& inputs) {
  const Roles roles = roles_of(inputs, hybrid_options().read(inputs.options));
  const auto conv = static_cast<int>(roles.conv.size()), fc = static_cast<int>(roles.fc.size());
  return busiest_seconds(inputs, roles.parts, {conv, fc});
}

Plan build_hybrid(const StrategyInputs& inputs) {
  HybridOptions options = hybrid_options().read(inputs.options);
  const Roles roles = roles_of(inputs, options);
  Plan plan = Hybrid(inputs, roles).build();
  options.conv_devices = static_cast<int>(roles.conv.size());
  options.fc_devices = static_cast<int>(roles.fc.size());
  plan.options = hybrid_options().write(options);
  return plan;
}

// Of devices for one kind of layers; the other's number follows.
StrategyOption devices_option(const char* name, const char* help, const std::string& other) {
  StrategyOption option = count_option(name, help);
  option.resets = {key_of(other)};
  option.fits_devices = true;
  return option;
}

}  // namespace

const OptionTable<HybridOptions>& hybrid_options() {
  static const auto table = [] {
    StrategyOption memory = text_option(
        "--fc-memory",
        "memory of the FC devices' solver state: device (default) or extended (a mapped file, on "
        "GPUs pinned memory); of their weights, too: numa:N or a folder");
    memory.fits_devices = true;
    return OptionTable<HybridOptions>()
        .add(devices_option("--conv-devices",
                            "devices for the convolutions (default: the fastest pair on sim)",
                            "--fc-devices"),
             &HybridOptions::conv_devices)
        .add(devices_option(
                 "--fc-devices",
                 "devices for the fully connected layers (default: the fastest pair on sim)",
                 "--conv-devices"),
             &HybridOptions::fc_devices)
        .add(std::move(memory), &HybridOptions::fc_memory);
  }();
  return table;
}

Strategy hybrid_strategy() {
  return {.name = "hybrid",
          .summary = "some devices have the convolutions, others the fully connected layers",
          .options = hybrid_options().options(),
          .build = &build_hybrid,
          .variants = &hybrid_variants,
          .defaults_to_fastest_variant = true,
          .min_seconds = &hybrid_least_seconds,
          .lossless_cases = &hybrid_lossless_cases};
}

}  // namespace tandem
