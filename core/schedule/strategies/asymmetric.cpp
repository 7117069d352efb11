// STRATEGIES §4: after a forward pass on all devices, group E computes the errors, layer after
// layer, and group W the gradients of the weights and the updates behind it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/schedule/strategies/asymmetric_groups.h"
#include "core/schedule/strategies/asymmetric_sending.h"
#include "core/schedule/strategies/backward_needs.h"
#include "core/schedule/strategies/buckets.h"
#include "core/schedule/strategies/master.h"
#include "core/schedule/strategies/strategies.h"
#include "core/schedule/strategies/updates.h"
#include "core/schedule/strategies/weight_shares.h"

namespace tandem {

namespace {

// Weights have the communication and send streams to themselves: what is left of them when the next
// step begins must not hold up its activations, nor a weight that is not ready the errors. Nobody
// updates while he sends these.
constexpr TransferStreams beside_weights{StreamKind::control, StreamKind::update};

class Asymmetric {
 public:
  // Without routes no weights are broadcast.
  Asymmetric(const StrategyInputs& inputs, AsymmetricGroups groups, AsymmetricRoutes routes)
      : groups_(std::move(groups)),
        routes_(std::move(routes)),
        builder_(inputs, "asymmetric", PlanBuilder::Purpose::training),
        net_(builder_.net()),
        updates_(builder_),
        shares_(net_, groups_.weights, !inputs.needs_norms) {
    make_error_places();
    make_weight_places();
  }

  Plan build() {
    note();
    emit_inputs();
    emit_forward();
    emit_report();
    for (const Place& place : places_) {
      for (const int layer : place.needs.again) builder_.emit_forward(place.place, layer);
    }
    emit_backward();
    return builder_.take();
  }

 private:
  // Where a device works on other rows than in its forward pass.
  struct Place {
    int place = 0;
    BackwardNeeds needs;
  };

  void make_error_places() {
    std::vector<bool> backward;
    for (const Layer& layer : net_.layers) backward.push_back(layer.wants_backward_data);
    const int count = static_cast<int>(groups_.errors.size());
    for (int i = 0; i < count; ++i) {
      const Rows rows = share(net_.batch, count, i);
      places_.push_back({builder_.add_place(groups_.errors[size_t(i)], rows, "errors"),
                         backward_needs(net_, backward)});
    }
  }
  void make_weight_places() {
    for (const int device : groups_.weights) {
      places_.push_back({builder_.add_place(device, {0, net_.batch}, "weights"),
                         backward_needs(net_, shares_.layers_of(device))});
    }
  }
  [[nodiscard]] bool computes_errors(const Place& place) const {
    return &place - places_.data() < static_cast<int64_t>(groups_.errors.size());
  }
  [[nodiscard]] const Place& weight_place(int device) const {
    const auto at = std::find(groups_.weights.begin(), groups_.weights.end(), device);
    return places_[groups_.errors.size() + size_t(at - groups_.weights.begin())];
  }

  void note() {
    Plan& plan = builder_.plan();
    plan.roles.groups = groups_.to_text();
    plan.notes.push_back(fmt::format("groups {}: E computes errors, W weights", plan.roles.groups));
    plan.weights_at = shares_.places();
  }

  void emit_inputs() {
    master::emit_inputs(builder_);
    for (const Place& place : places_) builder_.emit_input(place.place, place.needs.data);
  }

  // Every device has rows of the tensor; the place takes those it works on.
  void gather(const Place& place, int tensor) {
    const std::string& name = net_.tensors[size_t(tensor)].name;
    const int to = builder_.device_of(place.place), layer = net_.tensors[size_t(tensor)].producer;
    const Rows wanted = builder_.rows(place.place);
    for (int from = 0; from < builder_.devices(); ++from) {
      const Rows has = builder_.rows(from);
      const Rows both{std::max(has.begin, wanted.begin), std::min(has.end, wanted.end)};
      if (both.count() <= 0) continue;
      const CopySegment segment{builder_.tensor(from, tensor, both),
                                builder_.tensor(place.place, tensor, both)};
      if (from == to) {
        builder_.emit_copy(fmt::format("keep {} @{}", name, to), Stage::send_activations, layer,
                           {{to, StreamKind::copy}}, {segment});
      } else {
        builder_.emit_transfer("send " + name, Stage::send_activations, layer, from, to, {segment},
                               When::every_batch, beside_weights);
      }
    }
  }

  void emit_forward() {
    for (size_t layer = 0; layer < net_.layers.size(); ++layer) {
      master::emit_forward(builder_, static_cast<int>(layer), StreamKind::control);
      for (const Place& place : places_) {
        for (const int tensor : place.needs.after[layer]) gather(place, tensor);
      }
    }
  }

  void emit_report() {
    master::emit_report(builder_, true, StreamKind::control);
    updates_.emit_skip(0, groups_.weights);
  }

  // The errors of the layer's outputs, from E to those of W that need them.
  void send_errors(int layer, int device) {
    const Layer& l = net_.layers[size_t(layer)];
    const int to = weight_place(device).place;
    for (const Place& from : places_) {
      if (!computes_errors(from)) continue;
      std::vector<CopySegment> segments;
      for (const int output : l.outputs) {
        if (!net_.tensors[size_t(output)].has_gradient) continue;
        segments.push_back({builder_.tensor_gradient(from.place, output),
                            builder_.tensor_gradient(to, output, builder_.rows(from.place))});
      }
      if (segments.empty()) continue;
      builder_.emit_transfer(fmt::format("send {} errors", l.name), Stage::send_errors, layer,
                             builder_.device_of(from.place), device, std::move(segments),
                             When::every_batch, beside_weights);
    }
  }

  void emit_backward() {
    const std::vector<LayerMove> order = asymmetric_moves(builder_.inputs(), groups_, shares_);
    const bool clips = builder_.inputs().clips_gradients;
    size_t next = 0;
    const auto emit_moves = [&](int down_to) {
      for (; next < order.size() && order[next].layer >= down_to; ++next) {
        if (order[next].is_return) broadcast(order[next].layer);
      }
    };
    for (int layer = static_cast<int>(net_.layers.size()); layer-- > 0;) {
      emit_backward(layer);
      if (!clips) emit_moves(layer);
    }
    // Clipped updates wait for the norms of all gradients.
    updates_.finish();
    emit_moves(0);
  }

  void emit_backward(int layer) {
    const Layer& l = net_.layers[size_t(layer)];
    const std::vector<WeightShare> shares = shares_.of(layer);
    if (l.wants_backward_weights) {
      for (const WeightShare& share : shares) send_errors(layer, share.device);
    }
    for (const Place& place : places_) {
      if (!l.wants_backward_data || !computes_errors(place)) continue;
      builder_.emit_pass(builder_.label(LayerPass::backward_data, layer, place.place),
                         Stage::backward_errors,
                         {builder_.binding(place.place, layer), LayerPass::backward_data, false});
    }
    if (!l.wants_backward_weights) return;
    for (const WeightShare& share : shares) emit_gradients(layer, share);
    for (const WeightShare& share : shares) emit_update(layer, share);
  }

  void emit_gradients(int layer, const WeightShare& share) {
    const int place = weight_place(share.device).place;
    if (!share.is_slice) {
      builder_.emit_backward_weights(place, layer, Stage::backward_weights);
      return;
    }
    PlanBinding use = builder_.describe(place, layer);
    builder_.slice_outputs(use, share.begin, share.end);
    builder_.emit_pass(builder_.label(LayerPass::backward_weights, layer, place),
                       Stage::backward_weights,
                       {builder_.add_binding(std::move(use)), LayerPass::backward_weights, false});
  }

  void emit_update(int layer, const WeightShare& share) {
    const std::string& name = net_.layers[size_t(layer)].name;
    if (share.is_slice) {
      builder_.emit_update(fmt::format("update {} @{}", name, share.device), Stage::update_weights,
                           share.device, builder_.parts_of(layer, share.begin, share.end),
                           StreamKind::update);
      return;
    }
    if (weights_completed_by(net_, layer).empty()) return;
    updates_.add(share.device, Stage::update_weights, name, weights_completed_by(net_, layer));
  }

  // To E, whose next forward and errors need them, and within W.
  void broadcast(int layer) {
    for (const WeightShare& share : shares_.of(layer)) {
      const auto at = std::find(groups_.weights.begin(), groups_.weights.end(), share.device);
      const auto owner = size_t(at - groups_.weights.begin());
      const std::vector<WeightRange> ranges = shares_.ranges(layer, share);
      if (ranges.empty() || routes_.empty()) continue;
      for (int piece = 0; piece < broadcast_pieces; ++piece) {
        std::vector<WeightRange> mine;
        for (const WeightRange& range : ranges) {
          mine.push_back(slice_of(range, piece, broadcast_pieces));
          if (mine.back().bytes == 0) mine.pop_back();
        }
        if (!mine.empty()) broadcast(layer, share, piece, mine, routes_[owner][size_t(piece)].line);
      }
    }
  }
  // Both ways along the line, from hand to hand.
  void broadcast(int layer, const WeightShare& share, int piece,
                 const std::vector<WeightRange>& ranges, const std::vector<int>& line) {
    const std::string what = fmt::format("broadcast {}{}{}", net_.layers[size_t(layer)].name,
                                         share.is_slice ? fmt::format(" of @{}", share.device) : "",
                                         piece == 0 ? "" : "b");
    const auto hop = [&](int from, int to) {
      std::vector<CopySegment> segments;
      for (const WeightRange& range : ranges) {
        segments.push_back({builder_.weights(from, range), builder_.weights(to, range)});
      }
      builder_.emit_transfer(what, Stage::broadcast, layer, from, to, std::move(segments),
                             When::last_batch, full_duplex);
    };
    const auto at = std::find(line.begin(), line.end(), share.device);
    for (auto to = at; std::next(to) != line.end(); ++to) hop(*to, *std::next(to));
    for (auto to = at; to != line.begin(); --to) hop(*to, *std::prev(to));
  }

  AsymmetricGroups groups_;
  AsymmetricRoutes routes_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  WeightShares shares_;
  std::vector<Place> places_;  // E's, then W's
};

}  // namespace

Plan build_asymmetric(const StrategyInputs& inputs) {
  const AsymmetricGroups groups = asymmetric_groups(inputs);
  // What travels beside the weights does so whichever way the weights take.
  const Plan others = Asymmetric(inputs, groups, {}).build();
  return Asymmetric(inputs, groups, asymmetric_routes(inputs, groups, others)).build();
}

}  // namespace tandem
