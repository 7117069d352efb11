// docs/design/strategies.md §3: the last fully connected layers are divided by neurons; their
// gradients never travel. Everything else is data-parallel, each layer's gradient summed as soon as
// it exists.
#include <fmt/format.h>

#include <numeric>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/group_reduce.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"
#include "core/schedule/strategies/fc_parallel/fc_slices.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

namespace {

class FcParallel {
 public:
  FcParallel(const StrategyInputs& inputs, FcChain chain)
      : chain_(std::move(chain)),
        builder_(inputs, "fc_parallel", PlanBuilder::Purpose::training),
        net_(builder_.net()),
        updates_(builder_),
        slices_(builder_, chain_),
        everyone_(size_t(inputs.devices)),
        ring_(builder_, device_order(inputs)) {
    std::iota(everyone_.begin(), everyone_.end(), 0);
  }

  Plan build() {
    note();
    for (const int device : everyone_) builder_.emit_input(device, others_read_data());
    slices_.emit_inputs();
    for (int layer = 0; layer < layers(); ++layer) emit_forward(layer);
    stages::emit_report(builder_, true, StreamKind::control);
    updates_.emit_found_inf(0, everyone_);
    for (int layer = layers(); layer-- > 0;) emit_backward(layer);
    if (builder_.inputs().needs_norms) emit_updates_with_norms();
    return builder_.take();
  }

 private:
  [[nodiscard]] int layers() const { return static_cast<int>(net_.layers.size()); }
  [[nodiscard]] bool is_divided(int layer) const {
    return chain_.has(layer) && is_fully_connected(net_.layers[size_t(layer)]);
  }
  [[nodiscard]] std::vector<WeightSlice> parts(int layer, int device) const {
    return slices_of(net_, layer, slices_.neurons(layer, device));
  }

  void note() {
    Plan& plan = builder_.plan();
    plan.roles.quota = chain_.quota;
    plan.roles.eager = chain_.eager;
    plan.notes.push_back(fmt::format(
        "'{}' to '{}' divided by neurons over {} devices, {} of {} error pieces a round{}",
        net_.layers[size_t(chain_.layers.front())].name,
        net_.layers[size_t(chain_.layers.back())].name, everyone_.size(), chain_.quota,
        everyone_.size(), chain_.eager ? ", sent behind each" : ""));
    std::vector<bool> divided(net_.weights.size(), false);
    for (int layer = 0; layer < layers(); ++layer) {
      if (!is_divided(layer)) continue;
      for (const int device : everyone_) {
        for (const WeightSlice& part : parts(layer, device)) {
          plan.weights_at.push_back({device, range_of(net_, part)});
          divided[size_t(part.weight)] = true;
        }
      }
    }
    for (size_t i = 0; i < divided.size(); ++i) {
      if (!divided[i]) plan.weights_at.push_back({0, buffers::bytes_of(net_.weights[i])});
    }
  }

  [[nodiscard]] bool others_read_data() const {
    for (int layer = 0; layer < layers(); ++layer) {
      for (const int input : net_.layers[size_t(layer)].inputs) {
        const bool is_fed = net_.tensors[size_t(input)].producer < 0 && input != net_.label;
        if (is_fed && !chain_.has(layer)) return true;
      }
    }
    return false;
  }

  void emit_forward(int layer) {
    if (!chain_.has(layer)) {
      stages::emit_forward(builder_, layer, StreamKind::control);
      return;
    }
    slices_.emit_forward(layer);
    if (layer == chain_.layers.back()) slices_.emit_gather();
  }

  void emit_backward(int layer) {
    const Layer& l = net_.layers[size_t(layer)];
    if (!chain_.has(layer)) {
      const bool fc = layer > chain_.layers.back();
      stages::emit_backward(builder_, everyone_, layer,
                            fc ? Stage::backward_fc : Stage::backward_conv, StreamKind::control);
      emit_common_update(layer);
      return;
    }
    if (layer == chain_.layers.back() && l.has_backward()) slices_.emit_scatter();
    if (!is_divided(layer)) return;
    slices_.emit_backward(layer);
    if (!l.wants_backward_weights || builder_.inputs().needs_norms) return;
    for (const int device : everyone_) emit_slice_update(layer, device);
  }

  void emit_slice_update(int layer, int device) {
    const std::vector<WeightSlice> mine = parts(layer, device);
    if (mine.empty()) return;
    builder_.emit_update(fmt::format("update {} @{}", net_.layers[size_t(layer)].name, device),
                         Stage::update_fc, device, mine, StreamKind::update);
  }

  // Weights that every device has.
  void emit_common_update(int layer) {
    const std::vector<int> weights = weights_completed_by(net_, layer);
    if (weights.empty()) return;
    const std::string& name = net_.layers[size_t(layer)].name;
    ring_.emit_all_reduce(
        {name + " gradients", layer, Stage::send_conv_gradients, Stage::update_conv},
        weight_ranges(net_, weights));
    if (builder_.inputs().needs_norms) return;
    for (const int device : everyone_) updates_.add(device, Stage::update_conv, name, weights);
  }

  // A slice does not know the norm of its array: the first device sees all gradients and weights
  // and tells the others; every update waits for it.
  void emit_updates_with_norms() {
    std::vector<int> trained;
    for (int layer = layers(); layer-- > 0;) {
      for (const int weight : weights_completed_by(net_, layer)) trained.push_back(weight);
      if (is_divided(layer) && net_.layers[size_t(layer)].wants_backward_weights) {
        for (const int device : everyone_) collect(layer, device);
      }
    }
    builder_.emit_norms("norms @0", Stage::update_fc, 0, trained, StreamKind::update);
    const std::vector<Region> known = builder_.norms(0, trained);
    for (const int device : everyone_) {
      std::vector<CopySegment> segments;
      const std::vector<Region> wanted = builder_.norms(device, trained);
      for (size_t i = 0; i < known.size(); ++i) segments.push_back({known[i], wanted[i]});
      if (device == 0) continue;
      builder_.emit_transfer("send norms", Stage::update_fc, -1, 0, device, std::move(segments),
                             When::last_micro_batch, control_streams);
    }
    for (int layer = layers(); layer-- > 0;) {
      const std::vector<int> weights = weights_completed_by(net_, layer);
      if (weights.empty()) continue;
      const std::string& name = net_.layers[size_t(layer)].name;
      for (const int device : everyone_) {
        if (is_divided(layer)) {
          emit_slice_update(layer, device);
        } else {
          builder_.emit_update(fmt::format("update {} @{}", name, device), Stage::update_conv,
                               device, weights, StreamKind::update);
        }
      }
    }
  }

  // The gradients of the device's slice, and its weights, to the first device.
  void collect(int layer, int device) {
    if (device == 0) return;
    std::vector<CopySegment> segments;
    for (const WeightSlice& part : parts(layer, device)) {
      const Interval range = range_of(net_, part);
      segments.push_back({builder_.gradients(device, range), builder_.gradients(0, range)});
      segments.push_back({builder_.weights(device, range), builder_.weights(0, range)});
    }
    builder_.emit_transfer(fmt::format("send {} gradients", net_.layers[size_t(layer)].name),
                           Stage::send_fc_gradients, layer, device, 0, std::move(segments),
                           When::last_micro_batch, full_duplex);
  }

  FcChain chain_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  FcSlices slices_;
  std::vector<int> everyone_;
  RingGroup ring_;
};

}  // namespace

Plan build_fc_parallel(const StrategyInputs& inputs) {
  return FcParallel(inputs, fc_chain(inputs)).build();
}

}  // namespace tandem
