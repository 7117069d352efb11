#include "core/schedule/strategies/composed/composition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/ring_group.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"
#include "core/schedule/strategies/composed/column_parallel_linear.h"

namespace tandem {
namespace {

// When each bucket's gradient is complete, by the costs of the device with the most rows.
std::vector<double> ready_times(const StrategyInputs& in, const std::vector<Bucket>& buckets) {
  const Net& net = *in.net;
  const int64_t rows = share(net.batch, in.devices, 0).count();
  std::vector<double> ready(buckets.size(), 0);
  double now = 0;
  for (int layer = static_cast<int>(net.layers.size()); layer-- > 0;) {
    const Layer& l = net.layer(layer);
    const auto seconds = [&](bool wanted, LayerPass pass) {
      return wanted ? in.costs->pass_seconds(net, layer, pass, rows) : 0;
    };
    now += in.costs->statistics_seconds(net, layer, LayerPass::backward_statistics, rows);
    now += seconds(l.wants_backward_weights, LayerPass::backward_weights);
    for (size_t i = 0; i < buckets.size(); ++i) {
      if (buckets[i].layer == layer) ready[i] = now;
    }
    now += seconds(l.wants_backward_data, LayerPass::backward_data);
  }
  return ready;
}

std::vector<BucketTransfer> transfers_of(const StrategyInputs& in,
                                         const std::vector<Bucket>& buckets,
                                         const Collective& collective) {
  TransferTimes times;
  times.ready = ready_times(in, buckets);
  for (const Bucket& bucket : buckets) times.reduction.push_back(collective.seconds(bucket));
  times.broadcast = times.reduction;
  return order_transfers(buckets, times, collective.is_duplex(), in.clips_gradients);
}

// Some devices that divide a chain.
struct DividingGroup {
  DividingGroup(PlanBuilder& builder, const FcChain& chain, const std::vector<int>& members,
                const FcParallelOptions& options)
      : order(builder.inputs(), members),
        rounds(builder.net(), chain, rows_of(builder, members), options),
        slices(builder, rounds, order) {
    for (const int layer : chain.linear) linear.try_emplace(layer, slices, chain, layer);
  }
  static std::vector<Interval> rows_of(const PlanBuilder& builder,
                                       const std::vector<int>& members) {
    std::vector<Interval> rows;
    for (const int device : members) rows.push_back(builder.rows(device));
    return rows;
  }

  ArrivalOrder order;
  BackwardRounds rounds;
  Slices slices;
  std::map<int, ColumnParallelLinear> linear;  // by layer
};

// The devices in the order of their rows. Neighbors have neighboring rows, so that a group's follow
// each other.
std::vector<int> places_of(const StrategyInputs& inputs, const Composition& composition) {
  const bool has_parts =
      std::any_of(composition.divided.begin(), composition.divided.end(),
                  [&](const DividedChain& one) { return one.group < inputs.devices; });
  return has_parts ? device_order(inputs) : inputs.all_devices();
}

std::vector<Interval> rows_of(const StrategyInputs& inputs, const std::vector<int>& places) {
  std::vector<Interval> rows(places.size());
  for (int place = 0; place < inputs.devices; ++place) {
    rows[size_t(places[size_t(place)])] = share(inputs.net->batch, inputs.devices, place);
  }
  return rows;
}

class Composer {
 public:
  Composer(const StrategyInputs& inputs, const Composition& composition)
      : composition_(composition),
        places_(places_of(inputs, composition)),
        builder_(inputs.net->batch < inputs.devices
                     ? PlanBuilder(inputs, composition.strategy, PlanBuilder::Purpose::training)
                     : PlanBuilder(inputs, composition.strategy, PlanBuilder::Purpose::training,
                                   rows_of(inputs, places_))),
        net_(builder_.net()),
        updates_(builder_),
        everyone_(inputs.all_devices()),
        of_layer_(net_.layers.size(), nullptr) {
    std::set<int> divided;
    for (const DividedChain& one : composition_.divided) {
      add_chain(one);
      divided.insert(one.chain.linear.begin(), one.chain.linear.end());
    }
    buckets_ = make_buckets(net_, composition.bucket, divided);
    collective_ = Collective::make(composition.reduce, builder_, composition.pieces);
    transfers_ = transfers_of(inputs, buckets_, *collective_);
  }

  Plan build() {
    place_weights();
    emit_inputs();
    for (int layer = 0; layer < layers(); ++layer) emit_forward(layer);
    stages::emit_report(builder_, true, StreamKind::control);
    if (collective_->updates_everywhere() || has_divided()) {
      updates_.emit_found_inf(0, everyone_);
    }
    for (int layer = layers(); layer-- > 0;) {
      emit_backward(layer);
      emit_transfers(layer);
    }
    if (has_divided() && builder_.inputs().needs_norms) emit_updates_with_norms();
    return builder_.take();
  }

 private:
  struct Chain {
    const DividedChain* what = nullptr;
    std::vector<std::unique_ptr<DividingGroup>> groups;
    // Those with the same slice, by place in a group.
    [[nodiscard]] std::vector<int> devices_at(int place) const {
      std::vector<int> devices;
      for (const auto& group : groups) devices.push_back(group->order.members()[size_t(place)]);
      return devices;
    }
  };

  void add_chain(const DividedChain& what) {
    Chain& chain = *chains_.emplace_back(std::make_unique<Chain>());
    chain.what = &what;
    const auto size = size_t(what.group);
    for (size_t first = 0; first < places_.size(); first += size) {
      const std::vector<int> members(places_.begin() + std::ptrdiff_t(first),
                                     places_.begin() + std::ptrdiff_t(first + size));
      chain.groups.push_back(std::make_unique<DividingGroup>(
          builder_, what.chain, members,
          size == places_.size() ? composition_.rounds : FcParallelOptions{}));
    }
    for (const int layer : what.chain.layers) of_layer_[size_t(layer)] = &chain;
  }

  [[nodiscard]] int layers() const { return static_cast<int>(net_.layers.size()); }
  [[nodiscard]] bool has_divided() const { return !chains_.empty(); }
  // nullptr: it is data-parallel.
  [[nodiscard]] const Chain* chain_of(int layer) const { return of_layer_[size_t(layer)]; }
  // The device's part of the weights of a divided layer.
  [[nodiscard]] std::vector<WeightSlice> weights_of(const DividingGroup& group, int layer,
                                                    int device) const {
    return slices_of(net_, layer, group.slices.neurons(net_.layer(layer).outputs[0], device));
  }

  // Every group has the same slices, and the sums give each of them the new weights.
  void place_weights() {
    if (!has_divided()) return;
    Plan& plan = builder_.plan();
    std::vector<bool> divided(net_.weights.size(), false);
    for (const auto& chain : chains_) {
      const DividingGroup& group = *chain->groups.front();
      for (const int layer : chain->what->chain.linear) {
        for (const int device : group.order.members()) {
          for (const WeightSlice& part : weights_of(group, layer, device)) {
            plan.weights_at.push_back({device, range_of(net_, part)});
            divided[size_t(part.weight)] = true;
          }
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
        if (is_fed && chain_of(layer) == nullptr) return true;
      }
    }
    return false;
  }

  void emit_inputs() {
    const bool with_data = !has_divided() || data_parallel_layers_read_data();
    for (const int device : everyone_) builder_.emit_input(device, with_data);
    for (const auto& chain : chains_) {
      for (const auto& group : chain->groups) {
        if (!group->linear.begin()->second.reads_data()) continue;
        for (const int device : group->order.members()) {
          builder_.emit_input(group->slices.whole_batch(device));
        }
      }
    }
  }

  void emit_forward(int layer) {
    const Chain* chain = chain_of(layer);
    if (chain == nullptr) return stages::emit_forward(builder_, layer, StreamKind::control);
    for (const auto& group : chain->groups) {
      const auto linear = group->linear.find(layer);
      if (linear == group->linear.end()) {
        group->slices.emit_elementwise_forward(layer);
        continue;
      }
      linear->second.emit_forward();
      if (layer == chain->what->chain.linear.back()) linear->second.emit_gather_output();
    }
  }

  // Rounds of a divided layer include the element-wise layers after it.
  void emit_backward(int layer) {
    const Chain* chain = chain_of(layer);
    if (chain == nullptr) {
      stages::emit_backward(builder_, everyone_, layer, backward_stage(layer), StreamKind::control);
      return;
    }
    const bool is_linear = chain->groups.front()->linear.contains(layer);
    if (!is_linear || !net_.layer(layer).has_backward()) return;
    for (const auto& group : chain->groups) {
      ColumnParallelLinear& linear = group->linear.at(layer);
      if (layer == chain->what->chain.linear.back()) linear.emit_scatter_gradient();
      linear.emit_backward();
    }
    if (!net_.layer(layer).wants_backward_weights) return;
    for (int place = 0; place < chain->what->group; ++place) emit_slice(*chain, layer, place);
  }
  [[nodiscard]] Stage backward_stage(int layer) const {
    if (!has_divided()) return stages::backward;
    return layer > chains_.back()->what->chain.linear.back() ? stages::backward_fc
                                                             : stages::backward_conv;
  }

  // The sum of a slice's gradients over the groups, and its update; where that needs norms, the sum
  // alone.
  void emit_slice(const Chain& chain, int layer, int place) {
    const std::vector<int> devices = chain.devices_at(place);
    const std::vector<WeightSlice> mine = weights_of(*chain.groups.front(), layer, devices.front());
    if (mine.empty()) return;
    if (builder_.inputs().needs_norms) {
      RingGroup(builder_, device_order(builder_.inputs(), devices))
          .emit_all_reduce({fmt::format("{} slice {}", net_.layer(layer).name, place), layer,
                            stages::reduce_gradients, stages::reduce_gradients},
                           ranges_of(net_, mine));
      return;
    }
    if (devices.size() == 1) return emit_own_update(*chain.groups.front(), layer, devices.front());
    const auto sum = Collective::make_ring(builder_, devices, composition_.pieces);
    for (const WeightSlice& slice : mine) {
      const Bucket bucket{fmt::format("{} slice {}", net_.weight(slice.weight).name, place),
                          layer,
                          {slice.weight},
                          range_of(net_, slice)};
      sum->emit_reduction(bucket);
      sum->emit_update(bucket);
      sum->emit_broadcast(bucket);
    }
  }
  void emit_own_update(const DividingGroup& group, int layer, int device) {
    const std::vector<WeightSlice> mine = weights_of(group, layer, device);
    if (mine.empty()) return;
    builder_.emit_update(fmt::format("update {} @{}", net_.layer(layer).name, device),
                         stages::update_fc, device, mine, StreamKind::update);
  }

  // Those of data-parallel layers that may come before the backward pass of the layers before.
  void emit_transfers(int layer) {
    const bool clips = builder_.inputs().clips_gradients;
    for (; next_ < transfers_.size(); ++next_) {
      const BucketTransfer& transfer = transfers_[next_];
      const Bucket& bucket = buckets_[size_t(transfer.bucket)];
      if (bucket.layer < layer) break;
      if (!transfer.is_broadcast) {
        collective_->emit_reduction(bucket);
        if (!clips) collective_->emit_update(bucket);
        continue;
      }
      // A clipped update waits for all gradients; others follow their reduction.
      if (clips && has_divided()) {
        if (layer > 0) break;
        emit_divided_norms();
      }
      if (clips) collective_->emit_update(bucket);
      collective_->emit_broadcast(bucket);
    }
  }

  [[nodiscard]] std::vector<int> trained_weights(bool only_divided) const {
    std::vector<int> trained;
    for (int layer = layers(); layer-- > 0;) {
      if (only_divided && chain_of(layer) == nullptr) continue;
      const std::vector<int> weights = weights_completed_by(net_, layer);
      trained.insert(trained.end(), weights.begin(), weights.end());
    }
    return trained;
  }

  // A device with a slice of an array does not know the array's norm. Device 0 receives all slices
  // and sends the norms to the others; where it alone sums the other gradients, theirs as well.
  void emit_divided_norms() {
    if (std::exchange(has_norms_, true)) return;
    for (const auto& chain : chains_) {
      for (const int layer : chain->what->chain.linear) {
        if (!net_.layer(layer).wants_backward_weights) continue;
        for (const int device : chain->groups.front()->order.members()) {
          if (device != 0) send_slice(*chain->groups.front(), layer, device);
        }
      }
    }
    builder_.emit_norms("norms @0", stages::update_fc, 0, trained_weights(true),
                        StreamKind::update);
    for (const int device : everyone_) {
      if (device == 0) continue;
      updates_.send_norms(stages::update_fc, 0, device,
                          trained_weights(collective_->updates_everywhere()));
    }
  }

  void emit_updates_with_norms() {
    emit_divided_norms();
    for (const auto& chain : chains_) {
      for (const int layer : chain->what->chain.linear) {
        if (!net_.layer(layer).wants_backward_weights) continue;
        for (const auto& group : chain->groups) {
          for (const int device : group->order.members()) emit_own_update(*group, layer, device);
        }
      }
    }
  }

  // The gradients and weights of the device's slice, to device 0.
  void send_slice(const DividingGroup& group, int layer, int device) {
    std::vector<CopySegment> segments;
    for (const WeightSlice& part : weights_of(group, layer, device)) {
      const Interval range = range_of(net_, part);
      segments.push_back({builder_.gradients(device, range), builder_.gradients(0, range)});
      segments.push_back({builder_.weights(device, range), builder_.weights(0, range)});
    }
    if (segments.empty()) return;
    builder_.emit_transfer(fmt::format("send {} gradients", net_.layer(layer).name),
                           stages::send_fc_gradients, layer, device, 0, std::move(segments),
                           When::last_micro_batch, full_duplex);
  }

  const Composition& composition_;
  std::vector<int> places_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  std::vector<int> everyone_;
  std::vector<std::unique_ptr<Chain>> chains_;
  std::vector<const Chain*> of_layer_;  // nullptr: data-parallel
  std::vector<Bucket> buckets_;
  std::unique_ptr<Collective> collective_;
  std::vector<BucketTransfer> transfers_;
  size_t next_ = 0;         // of transfers_
  bool has_norms_ = false;  // those of divided layers
};

}  // namespace

Plan compose(const StrategyInputs& inputs, const Composition& composition) {
  return Composer(inputs, composition).build();
}

int64_t default_bucket(const StrategyInputs& inputs, const std::string& reduce) {
  constexpr int64_t usual = int64_t{4} << 20, most = int64_t{64} << 20;
  constexpr double times_latency = 8;
  if (reduce != "ring" || inputs.devices < 2) return usual;
  const std::vector<int> order = device_order(inputs);
  double part = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const int from = order[i], to = order[(i + 1) % order.size()];
    const double latency = transfer_seconds(inputs, from, to, 0);
    const double per_byte = (transfer_seconds(inputs, from, to, usual) - latency) / double(usual);
    part = std::max(part, times_latency * latency / per_byte);
  }
  constexpr int halves = 2;
  const double wanted = part * halves * inputs.devices;
  if (!(wanted < static_cast<double>(most))) return most;
  return std::max(static_cast<int64_t>(wanted), usual);
}

}  // namespace tandem
