#include "core/schedule/strategies/fc_parallel/fc_parallel.h"

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/ring_group.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"
#include "core/schedule/strategies/fc_parallel/column_parallel_linear.h"

namespace tandem {
namespace {

class FcParallel {
 public:
  explicit FcParallel(const StrategyInputs& inputs)
      : chain_(fc_chain(inputs)),
        rounds_(*inputs.net, chain_, inputs.devices, fc_parallel_options().read(inputs.options)),
        builder_(inputs, "fc_parallel", PlanBuilder::Purpose::training),
        net_(builder_.net()),
        updates_(builder_),
        slices_(builder_, rounds_),
        everyone_(inputs.all_devices()),
        ring_(builder_, device_order(inputs)) {
    for (const int layer : chain_.linear) {
      linear_.try_emplace(layer, slices_, chain_, layer);
    }
  }

  Plan build() {
    write_notes();
    place_weights();
    const bool with_data = data_parallel_layers_read_data();
    for (const int device : everyone_) builder_.emit_input(device, with_data);
    if (linear_.at(chain_.linear.front()).reads_data()) {
      for (const int device : everyone_) builder_.emit_input(slices_.whole_batch(device));
    }
    for (int layer = 0; layer < layers(); ++layer) emit_forward(layer);
    stages::emit_report(builder_, true, StreamKind::control);
    updates_.emit_found_inf(0, everyone_);
    for (int layer = layers(); layer-- > 0;) emit_backward(layer);
    if (needs_norms()) emit_updates_with_norms();
    return builder_.take();
  }

 private:
  [[nodiscard]] int layers() const { return static_cast<int>(net_.layers.size()); }
  [[nodiscard]] bool needs_norms() const { return builder_.inputs().needs_norms; }
  [[nodiscard]] bool is_divided(int layer) const { return linear_.contains(layer); }
  // The device's part of the weights of a divided layer.
  [[nodiscard]] std::vector<WeightSlice> weights_of(int layer, int device) const {
    return slices_of(net_, layer, slices_.neurons(net_.layer(layer).outputs[0], device));
  }

  void write_notes() {
    Plan& plan = builder_.plan();
    const FcParallelOptions& options = rounds_.options();
    plan.options = fc_parallel_options().write(options);
    plan.notes.push_back(
        fmt::format("'{}' to '{}' divided by neurons over {} devices, {} of {} gradient parts a "
                    "round{}",
                    net_.layer(chain_.linear.front()).name, net_.layer(chain_.linear.back()).name,
                    everyone_.size(), options.quota, everyone_.size(),
                    options.eager ? ", sent after each" : ""));
  }

  void place_weights() {
    Plan& plan = builder_.plan();
    std::vector<bool> divided(net_.weights.size(), false);
    for (const int layer : chain_.linear) {
      for (const int device : everyone_) {
        for (const WeightSlice& part : weights_of(layer, device)) {
          plan.weights_at.push_back({device, range_of(net_, part)});
          divided[size_t(part.weight)] = true;
        }
      }
    }
    for (size_t i = 0; i < divided.size(); ++i) {
      if (!divided[i]) plan.weights_at.push_back({0, buffers::bytes_of(net_.weights[i])});
    }
  }

  [[nodiscard]] bool data_parallel_layers_read_data() const {
    for (int layer = 0; layer < layers(); ++layer) {
      for (const int input : net_.layer(layer).inputs) {
        const bool is_fed = net_.tensor(input).producer < 0 && input != net_.label;
        if (is_fed && !chain_.has(layer)) return true;
      }
    }
    return false;
  }

  void emit_forward(int layer) {
    if (!chain_.has(layer)) {
      stages::emit_forward(builder_, layer, StreamKind::control);
    } else if (!is_divided(layer)) {
      slices_.emit_elementwise_forward(layer);
    } else {
      linear_.at(layer).emit_forward();
      if (layer == chain_.linear.back()) linear_.at(layer).emit_gather_output();
    }
  }

  // Rounds of a divided layer include the element-wise layers after it.
  void emit_backward(int layer) {
    if (!chain_.has(layer)) {
      const bool fc = layer > chain_.linear.back();
      stages::emit_backward(builder_, everyone_, layer,
                            fc ? stages::backward_fc : stages::backward_conv, StreamKind::control);
      emit_all_reduce(layer);
    } else if (is_divided(layer) && net_.layer(layer).has_backward()) {
      if (layer == chain_.linear.back()) linear_.at(layer).emit_scatter_gradient();
      linear_.at(layer).emit_backward();
      if (!net_.layer(layer).wants_backward_weights || needs_norms()) return;
      for (const int device : everyone_) emit_update(layer, device);
    }
  }

  // The gradients that are complete with this data-parallel layer, and their update everywhere.
  void emit_all_reduce(int layer) {
    const std::vector<int> weights = weights_completed_by(net_, layer);
    if (weights.empty()) return;
    const std::string& name = net_.layer(layer).name;
    ring_.emit_all_reduce(
        {name + " gradients", layer, stages::send_conv_gradients, stages::update_conv},
        weight_ranges(net_, weights));
    if (needs_norms()) return;
    for (const int device : everyone_) updates_.add(device, stages::update_conv, name, weights);
  }

  // Of what the device has of the layer's weights.
  void emit_update(int layer, int device) {
    const std::string label = fmt::format("update {} @{}", net_.layer(layer).name, device);
    if (!is_divided(layer)) {
      builder_.emit_update(label, stages::update_conv, device, weights_completed_by(net_, layer),
                           StreamKind::update);
    } else if (const std::vector<WeightSlice> mine = weights_of(layer, device); !mine.empty()) {
      builder_.emit_update(label, stages::update_fc, device, mine, StreamKind::update);
    }
  }

  // A device with a slice of an array does not know the array's norm. Device 0 receives all slices
  // and sends the norms to the others; every update waits for them.
  void emit_updates_with_norms() {
    std::vector<int> trained, updated;
    for (int layer = layers(); layer-- > 0;) {
      const std::vector<int> weights = weights_completed_by(net_, layer);
      if (weights.empty()) continue;
      trained.insert(trained.end(), weights.begin(), weights.end());
      updated.push_back(layer);
      for (const int device : everyone_) {
        if (is_divided(layer) && device != 0) send_slice(layer, device);
      }
    }
    builder_.emit_norms("norms @0", stages::update_fc, 0, trained, StreamKind::update);
    for (const int device : everyone_) {
      if (device != 0) updates_.send_norms(stages::update_fc, 0, device, trained);
    }
    for (const int layer : updated) {
      for (const int device : everyone_) emit_update(layer, device);
    }
  }

  // The gradients and weights of the device's slice, to device 0.
  void send_slice(int layer, int device) {
    std::vector<CopySegment> segments;
    for (const WeightSlice& part : weights_of(layer, device)) {
      const Interval range = range_of(net_, part);
      segments.push_back({builder_.gradients(device, range), builder_.gradients(0, range)});
      segments.push_back({builder_.weights(device, range), builder_.weights(0, range)});
    }
    builder_.emit_transfer(fmt::format("send {} gradients", net_.layer(layer).name),
                           stages::send_fc_gradients, layer, device, 0, std::move(segments),
                           When::last_micro_batch, full_duplex);
  }

  FcChain chain_;
  BackwardRounds rounds_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  Slices slices_;
  std::vector<int> everyone_;
  RingGroup ring_;
  std::map<int, ColumnParallelLinear> linear_;  // by layer
};

Plan build_fc_parallel(const StrategyInputs& inputs) {
  return FcParallel(inputs).build();
}

// In each round of a layer every device sends to every other one. Of many devices small quotas have
// millions of messages, which take minutes and gigabytes to simulate: those are not tried.
bool has_few_messages(int64_t devices, int64_t quota) {
  constexpr int64_t max_of_a_layer = int64_t{1} << 17;
  return (devices + quota - 1) / quota * devices * devices <= max_of_a_layer;
}

std::vector<StrategyVariant> fc_parallel_variants(const StrategyInputs& inputs) {
  FcParallelOptions options = fc_parallel_options().read(inputs.options);
  std::vector<StrategyVariant> result;
  if (options.quota == 0) {
    for (int quota = inputs.devices; quota >= 1; quota /= 2) {
      if (options.eager && quota == inputs.devices) continue;
      if (!result.empty() && !has_few_messages(inputs.devices, quota)) break;
      result.push_back(
          {fmt::format("--quota {}", quota), fc_parallel_options().write({quota, options.eager})});
    }
  }
  if (result.size() < 2) result = {{"", inputs.options}};
  return result;
}

// A device's share of all layers but the element-wise ones of the chain; linear layers as often as
// their rounds repeat them.
double fc_parallel_least_seconds(const StrategyInputs& inputs) {
  const Net& net = *inputs.net;
  const FcChain chain = fc_chain(inputs);
  const BackwardRounds rounds(net, chain, inputs.devices,
                              fc_parallel_options().read(inputs.options));
  double sum = 0;
  for (int layer = 0; layer < static_cast<int>(net.layers.size()); ++layer) {
    const bool is_divided = chain.has(layer);
    if (is_divided && !is_fully_connected(net.layer(layer))) continue;
    const int64_t rows = is_divided ? net.batch : share(net.batch, inputs.devices, 0).count();
    const int slices = is_divided ? inputs.devices : 1;
    const auto seconds = [&](LayerPass pass, int times) {
      return times * inputs.costs->pass_seconds(net, layer, pass, rows) / slices;
    };
    sum += seconds(LayerPass::forward, 1);
    if (!net.layer(layer).has_backward()) continue;
    sum += seconds(LayerPass::backward, is_divided ? rounds.repetitions(layer) : 1);
  }
  return sum;
}

std::vector<StrategyOptions> fc_parallel_lossless_cases(int devices) {
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
    StrategyOption quota = count_option("--quota",
                                        "parts of the activation gradients that a round of the "
                                        "backward pass waits for (default: the "
                                        "fastest on sim)");
    quota.fits_devices = true;
    StrategyOption eager = flag_option(
        "--eager",
        "send activation gradients in every round of the backward pass, not once after the last");
    eager.resets = {"quota"};
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
  strategy.build = &build_fc_parallel;
  strategy.variants = &fc_parallel_variants;
  strategy.defaults_to_fastest_variant = true;
  strategy.min_seconds = &fc_parallel_least_seconds;
  strategy.lossless_cases = &fc_parallel_lossless_cases;
  return strategy;
}

}  // namespace tandem
