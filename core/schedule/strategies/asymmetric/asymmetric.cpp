// docs/design/strategies.md §4: after a forward pass on all devices, group E computes the errors,
// layer after layer, and group W the gradients of the weights and the updates behind it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/schedule/strategies/asymmetric/asymmetric.h"
#include "core/schedule/strategies/asymmetric/asymmetric_rows.h"
#include "core/schedule/strategies/asymmetric/asymmetric_sending.h"
#include "core/schedule/strategies/common/backward_needs.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"

namespace tandem {

namespace {

class Asymmetric {
 public:
  Asymmetric(const StrategyInputs& inputs, AsymmetricGroups groups, WeightShares shares)
      : groups_(std::move(groups)),
        shares_(std::move(shares)),
        builder_(inputs, "asymmetric", PlanBuilder::Purpose::training),
        net_(builder_.net()),
        updates_(builder_) {
    make_gradient_places();
    make_weight_places();
  }

  Plan build() {
    note();
    emit_inputs();
    emit_forward();
    emit_report();
    emit_backward();
    updates_.finish();  // of gradients that are clipped by the norms of all
    // What travels beside the weights does so whichever way these take.
    emit_broadcasts(builder_, shares_,
                    weight_chunks(builder_.inputs(), groups_, shares_, builder_.plan()));
    return builder_.take();
  }

 private:
  // Where a device goes backward.
  struct Place {
    int place = 0;
    BackwardNeeds needs;
  };

  void make_gradient_places() {
    std::vector<bool> backward;
    for (const Layer& layer : net_.layers) backward.push_back(layer.wants_backward_data);
    parts_ = error_rows(builder_.inputs(), groups_);
    std::map<int, int> others;  // by device, of its parts
    for (const ActivationGradientRows& part : parts_) {
      if (part.is_own()) {
        places_.push_back(
            {part.device, backward_needs(net_, std::vector<bool>(net_.layers.size()))});
        continue;
      }
      const int number = ++others[part.device];
      places_.push_back(
          {builder_.add_shard(part.device, part.rows,
                              number == 1 ? "errors" : fmt::format("errors {}", number)),
           backward_needs(net_, backward)});
    }
  }
  void make_weight_places() {
    for (const int device : groups_.weights) {
      places_.push_back({builder_.add_shard(device, {0, net_.batch}, "weights"),
                         backward_needs(net_, shares_.layers_of(device))});
    }
  }
  [[nodiscard]] const Place& weight_place(int device) const {
    const auto at = std::find(groups_.weights.begin(), groups_.weights.end(), device);
    return places_[parts_.size() + size_t(at - groups_.weights.begin())];
  }

  void note() {
    Plan& plan = builder_.plan();
    plan.roles.groups = groups_.to_text();
    plan.notes.push_back(fmt::format("groups {}: E computes errors, W weights", plan.roles.groups));
    plan.weights_at = shares_.places();
  }

  void emit_inputs() {
    stages::emit_inputs(builder_);
    for (const Place& place : places_) {
      if (place.place >= builder_.devices()) builder_.emit_input(place.place, place.needs.data);
    }
  }

  // The rows of the tensor that `from` went forward over and the place works on.
  void gather(const Place& place, int tensor, int from) {
    const std::string& name = net_.tensors[size_t(tensor)].name;
    const int to = builder_.device_of(place.place), layer = net_.tensors[size_t(tensor)].producer;
    const Interval has = builder_.rows(from), wanted = builder_.rows(place.place);
    const Interval both = intersection(has, wanted);
    if (both.is_empty()) return;
    if (from == to) {
      builder_.emit_copy(
          fmt::format("keep {} @{}", name, to), Stage::send_activations, layer,
          {{to, StreamKind::copy}},
          {{builder_.tensor(from, tensor, both), builder_.tensor(place.place, tensor, both)}});
      return;
    }
    for (const Interval& some : message_rows(both, row_bytes(net_, tensor))) {
      const std::string rows =
          some.count() == both.count() ? "" : fmt::format(", rows {}-{}", some.begin, some.end);
      builder_.emit_transfer(
          "send " + name + rows, Stage::send_activations, layer, from, to,
          {{builder_.tensor(from, tensor, some), builder_.tensor(place.place, tensor, some)}},
          When::every_micro_batch, full_duplex);
    }
  }

  // In rounds in which every device sends one while it receives one.
  void emit_forward() {
    for (size_t layer = 0; layer < net_.layers.size(); ++layer) {
      stages::emit_forward(builder_, static_cast<int>(layer), StreamKind::control);
      for (int round = 0; round < builder_.devices(); ++round) {
        for (const Place& place : places_) {
          const int from = (builder_.device_of(place.place) + round) % builder_.devices();
          for (const int tensor : place.needs.after[layer]) gather(place, tensor, from);
        }
      }
    }
  }

  void emit_report() {
    stages::emit_report(builder_, true, StreamKind::control);
    updates_.emit_found_inf(0, groups_.weights);
  }

  // Pieces of rows can be worked on by themselves.
  [[nodiscard]] bool takes_pieces(int layer) const {
    return net_.layers[size_t(layer)].has(TANDEM_SAVES_NOTHING) && !shares_.is_shared(layer);
  }

  void send_activation_gradients(int layer, const ActivationGradientPiece& piece, int device) {
    const Layer& l = net_.layers[size_t(layer)];
    const ActivationGradientRows& part = parts_[piece.part];
    const int from = places_[piece.part].place, to = weight_place(device).place;
    std::vector<CopySegment> segments;
    for (const int output : l.outputs) {
      if (!net_.tensors[size_t(output)].has_gradient) continue;
      segments.push_back({builder_.tensor_gradient(from, output, piece.rows),
                          builder_.tensor_gradient(to, output, piece.rows)});
    }
    if (segments.empty()) return;
    const bool is_whole = piece.rows.count() == part.rows.count();
    builder_.emit_transfer(
        fmt::format("send {} errors{}{}", l.name,
                    part.is_own() ? "" : fmt::format(" of @{}", part.forward_on),
                    is_whole ? "" : fmt::format(", rows {}-{}", piece.rows.begin, piece.rows.end)),
        Stage::send_activation_gradients, layer, part.device, device, std::move(segments),
        When::every_micro_batch, full_duplex);
  }

  // Of rows that it has from others, a device waits for the last activations: meanwhile it goes
  // backward over its own, down to the first errors that W is sent.
  void emit_backward() {
    const auto layers = static_cast<int>(net_.layers.size());
    int top = layers - 1;
    while (top > 0 && !net_.layers[size_t(top)].wants_backward_weights) --top;
    emit_activation_gradients(top, layers, true);
    for (const Place& place : places_) {
      for (const int layer : place.needs.again) builder_.emit_forward(place.place, layer);
    }
    emit_activation_gradients(top, layers, false);
    for (int layer = top; layer >= 0;) {
      emit_weights(layer);
      const int above = layer + 1;
      do --layer;
      while (layer >= 0 && !net_.layers[size_t(layer)].wants_backward_weights);
      emit_activation_gradients(layer, above, true);
      emit_activation_gradients(layer, above, false);
    }
  }

  [[nodiscard]] std::vector<ActivationGradientPiece> pieces_of(int layer) const {
    const Layer& l = net_.layers[size_t(layer)];
    if (!l.wants_backward_weights) return {};
    return gradient_pieces(parts_, shares_.of(layer).size(), row_bytes(net_, l.outputs[0]));
  }

  // Down from layer `above` - 1 to the errors of `layer`'s outputs, which are sent (-1: to the
  // end): of E's own rows, or of others'. While those of some rows are on their way, the next are
  // computed.
  void emit_activation_gradients(int layer, int above, bool own) {
    const std::vector<ActivationGradientPiece> pieces =
        layer < 0 ? std::vector<ActivationGradientPiece>() : pieces_of(layer);
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (parts_[part].is_own() != own) continue;
      const std::vector<Interval> passes = passes_pieces(net_, layer, above)
                                               ? pass_rows(parts_, part, pieces)
                                               : std::vector<Interval>{parts_[part].rows};
      for (const Interval& rows : passes) {
        for (int l = above; l-- > layer + 1;) {
          if (!net_.layers[size_t(l)].wants_backward_data) continue;
          emit_pass(places_[part].place, l, rows);
        }
        for (const ActivationGradientPiece& piece : pieces) {
          if (piece.part != part || piece.rows.begin < rows.begin || piece.rows.end > rows.end) {
            continue;
          }
          send_activation_gradients(layer, piece, shares_.of(layer)[piece.target].device);
        }
      }
    }
  }

  void emit_pass(int place, int layer, Interval rows) {
    const bool is_whole = rows.count() == builder_.rows(place).count();
    int use = -1;
    if (is_whole) {
      use = builder_.binding(place, layer);
    } else {
      PlanBinding some = builder_.describe(place, layer);
      builder_.slice_rows(some, place, rows);
      use = builder_.add_binding(std::move(some));
    }
    builder_.emit_pass(builder_.label(LayerPass::backward_data, layer, place) +
                           (is_whole ? "" : fmt::format(", rows {}-{}", rows.begin, rows.end)),
                       Stage::backward_data, {use, LayerPass::backward_data, false});
  }

  void emit_weights(int layer) {
    const std::vector<WeightShare>& shares = shares_.of(layer);
    for (size_t i = 0; i < shares.size(); ++i) {
      const int place = weight_place(shares[i].device).place;
      if (!takes_pieces(layer)) {
        if (shares[i].is_slice) {
          emit_gradients(layer, shares[i], builder_.rows(place), false);
        } else {
          builder_.emit_backward_weights(place, layer, Stage::backward_weights);
        }
        continue;
      }
      bool adds = false;
      for (const ActivationGradientPiece& piece : pieces_of(layer)) {
        if (piece.target != i) continue;
        emit_gradients(layer, shares[i], piece.rows, adds);
        adds = true;
      }
    }
    for (const WeightShare& share : shares) emit_update(layer, share);
  }

  void emit_gradients(int layer, const WeightShare& share, Interval rows, bool adds) {
    const int place = weight_place(share.device).place;
    PlanBinding use = builder_.describe(place, layer);
    const bool is_whole = rows.count() == builder_.rows(place).count();
    if (!is_whole) builder_.slice_rows(use, place, rows);
    if (share.is_slice) builder_.slice_outputs(use, share.channels);
    builder_.emit_pass(builder_.label(LayerPass::backward_weights, layer, place) +
                           (is_whole ? "" : fmt::format(", rows {}-{}", rows.begin, rows.end)),
                       Stage::backward_weights,
                       {builder_.add_binding(std::move(use)), LayerPass::backward_weights, adds});
  }

  void emit_update(int layer, const WeightShare& share) {
    const std::string& name = net_.layers[size_t(layer)].name;
    if (share.is_slice) {
      builder_.emit_update(fmt::format("update {} @{}", name, share.device), Stage::update_weights,
                           share.device, slices_of(net_, layer, share.channels),
                           StreamKind::update);
      return;
    }
    updates_.add(share.device, Stage::update_weights, name, weights_completed_by(net_, layer));
  }

  AsymmetricGroups groups_;
  WeightShares shares_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  std::vector<ActivationGradientRows> parts_;
  std::vector<Place> places_;  // parts_', then W's
};

}  // namespace

Plan asymmetric_plan(const StrategyInputs& inputs, const AsymmetricGroups& groups,
                     Division division) {
  WeightShares shares(*inputs.net, groups.weights, division);
  Plan plan = Asymmetric(inputs, groups, std::move(shares)).build();
  plan.roles.slices = to_text(division);
  plan.notes.push_back("slices: " + plan.roles.slices);
  return plan;
}

}  // namespace tandem
