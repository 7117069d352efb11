#include "core/schedule/strategies/fc_parallel/fc_parallel.h"

#include <fmt/format.h>

#include <numeric>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/ring_group.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"
#include "core/schedule/strategies/fc_parallel/fc_slices.h"

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
    return builder_.slices_of(layer, slices_.neurons(layer, device));
  }

  void note() {
    Plan& plan = builder_.plan();
    plan.options = fc_parallel_options().write({chain_.quota, chain_.eager});
    plan.notes.push_back(fmt::format(
        "'{}' to '{}' divided by neurons over {} devices, {} of {} gradient pieces a round{}",
        net_.layers[size_t(chain_.layers.front())].name,
        net_.layers[size_t(chain_.layers.back())].name, everyone_.size(), chain_.quota,
        everyone_.size(), chain_.eager ? ", sent after each" : ""));
    std::vector<bool> divided(net_.weights.size(), false);
    for (int layer = 0; layer < layers(); ++layer) {
      if (!is_divided(layer)) continue;
      for (const int device : everyone_) {
        for (const WeightSlice& part : parts(layer, device)) {
          plan.weights_at.push_back({device, builder_.range_of(part)});
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
      const Interval range = builder_.range_of(part);
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

FcChain chain_of(const StrategyInputs& inputs) {
  const FcParallelOptions options = fc_parallel_options().read(inputs.options);
  return fc_chain(inputs, options.quota, options.eager);
}

Plan build(const StrategyInputs& inputs) {
  return FcParallel(inputs, chain_of(inputs)).build();
}

std::vector<StrategyVariant> variants(const StrategyInputs& inputs) {
  FcParallelOptions options = fc_parallel_options().read(inputs.options);
  std::vector<StrategyVariant> result;
  if (options.quota == 0) {
    for (int quota = inputs.devices; quota >= 1; quota /= 2) {
      if (options.eager && quota == inputs.devices) continue;
      result.push_back(
          {fmt::format("--quota {}", quota), fc_parallel_options().write({quota, options.eager})});
    }
  }
  if (result.size() < 2) result = {{"", inputs.options}};
  return result;
}

// A device's share of the layers outside the chain; inside it every round after the first repeats
// the passes of a layer's neurons, but for the last layer, whose rounds are rows of the batch.
double least_seconds(const StrategyInputs& inputs) {
  const Net& net = *inputs.net;
  const FcChain chain = chain_of(inputs);
  const int64_t rows = share(net.batch, inputs.devices, 0).count();
  double sum = 0;
  for (int layer = 0; layer < static_cast<int>(net.layers.size()); ++layer) {
    const auto seconds = [&](LayerPass pass, int64_t of) {
      return inputs.costs->pass_seconds(net, layer, pass, of);
    };
    const bool goes_backward = net.layers[size_t(layer)].has_backward();
    if (!chain.has(layer)) {
      sum += seconds(LayerPass::forward, rows);
      if (goes_backward) sum += seconds(LayerPass::backward, rows);
    } else if (is_fully_connected(net.layers[size_t(layer)])) {
      const bool is_last = chain.above(net, layer) < 0;
      const auto rounds = double(is_last ? 1 : (inputs.devices + chain.quota - 1) / chain.quota);
      sum += seconds(LayerPass::forward, net.batch) / inputs.devices;
      if (goes_backward) sum += rounds * seconds(LayerPass::backward, net.batch) / inputs.devices;
    }
  }
  return sum;
}

std::vector<StrategyOptions> lossless_cases(int devices) {
  std::vector<StrategyOptions> cases;
  for (int quota = 1; devices > 1 && quota <= devices; ++quota) {
    for (const bool eager : {false, true}) {
      if (eager && quota == devices) continue;
      cases.push_back(fc_parallel_options().write({quota, eager}));
    }
  }
  return cases;
}

}  // namespace

const OptionTable<FcParallelOptions>& fc_parallel_options() {
  static const auto table = [] {
    StrategyOption quota = count_option(
        "--quota",
        "pieces of activation gradients that a round of the backward pass waits for (default: the "
        "fastest on sim)");
    quota.fits_devices = true;
    StrategyOption eager = flag_option(
        "--eager",
        "send activation gradients in every round of the backward pass, not once after the last");
    eager.frees = {"quota"};
    eager.fits_devices = true;
    return OptionTable<FcParallelOptions>()
        .add(std::move(quota), &FcParallelOptions::quota)
        .add(std::move(eager), &FcParallelOptions::eager);
  }();
  return table;
}

Strategy fc_parallel_strategy() {
  Strategy strategy;
  strategy.name = "fc_parallel";
  strategy.summary = "fully connected layers are divided by neurons, activations travel";
  strategy.options = fc_parallel_options().options();
  strategy.build = &build;
  strategy.variants = &variants;
  strategy.defaults_to_fastest_variant = true;
  strategy.least_seconds = &least_seconds;
  strategy.lossless_cases = &lossless_cases;
  return strategy;
}

}  // namespace tandem
