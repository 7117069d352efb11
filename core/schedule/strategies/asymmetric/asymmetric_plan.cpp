#include "core/schedule/strategies/asymmetric/asymmetric_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/asymmetric/asymmetric.h"
#include "core/schedule/strategies/asymmetric/asymmetric_broadcast.h"
#include "core/schedule/strategies/common/backward_needs.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"

namespace tandem {
namespace {

// The devices that compute the gradients of activations are others than those of the weights.
constexpr Stage backward_data_stage{16, "backward_data", "#fdb462"};
constexpr Stage backward_weights_stage{17, "backward_weights", "#fb8072"};
constexpr Stage update_weights_stage{18, "update_weights", "#66c2a5"};

class Asymmetric {
 public:
  Asymmetric(const StrategyInputs& inputs, AsymmetricGroups groups, WeightDivision division,
             bool to_all)
      : groups_(std::move(groups)),
        division_(std::move(division)),
        to_all_(to_all),
        builder_(inputs, "asymmetric", PlanBuilder::Purpose::training),
        net_(builder_.net()),
        updates_(builder_) {
    add_backward_shards();
    add_weight_shards();
  }

  Plan build() {
    note();
    emit_inputs();
    emit_forward();
    emit_report();
    emit_backward();
    updates_.finish();  // of gradients that are clipped by the norms of all
    // What travels beside the weights does so whichever way these take.
    emit_broadcasts(builder_, division_,
                    weight_messages(builder_.inputs(), groups_, division_, builder_.plan()));
    return builder_.take();
  }

 private:
  // Rows that a device runs the backward pass over, and what it needs for that.
  struct Work {
    int shard = 0;
    BackwardNeeds needs;
  };

  void add_backward_shards() {
    std::vector<bool> backward;
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      const bool passes_on = net_.makes_gradient_views(static_cast<int>(i));
      backward.push_back(net_.layers[i].wants_backward_data && !passes_on);
    }
    parts_ = backward_rows(builder_.inputs(), groups_);
    std::map<int, int> others;  // by device, of its parts
    for (const BackwardRows& part : parts_) {
      if (part.is_own()) {
        work_.push_back({part.device, backward_needs(net_, std::vector<bool>(net_.layers.size()))});
        continue;
      }
      const int number = ++others[part.device];
      work_.push_back(
          {builder_.add_shard(part.device, part.rows,
                              number == 1 ? "of others" : fmt::format("of others {}", number)),
           backward_needs(net_, backward)});
    }
  }
  void add_weight_shards() {
    for (const int device : groups_.weights) {
      work_.push_back({builder_.add_shard(device, {0, net_.batch}, "weights"),
                       backward_needs(net_, division_.layers_of(device))});
    }
  }
  [[nodiscard]] const Work& weight_work(int device) const {
    const auto at = std::find(groups_.weights.begin(), groups_.weights.end(), device);
    return work_[parts_.size() + size_t(at - groups_.weights.begin())];
  }

  void note() {
    Plan& plan = builder_.plan();
    plan.notes.push_back(fmt::format(
        "groups {}: E computes activation gradients, W gradients of weights", groups_.to_text()));
    plan.weights_at = division_.weights_at();
  }

  void emit_inputs() {
    stages::emit_inputs(builder_);
    for (const Work& work : work_) {
      if (work.shard >= builder_.devices()) builder_.emit_input(work.shard, work.needs.data);
    }
  }

  // A layer that does not run in place may give its output the name of its input, so names of
  // tensors come again.
  [[nodiscard]] std::string name_of(int tensor) const {
    const Layer& producer = net_.layer(net_.tensor(tensor).producer);
    return producer.outputs.size() == 1
               ? producer.name
               : fmt::format("{} of {}", net_.tensor(tensor).name, producer.name);
  }

  // The rows of the tensor that `from` ran the forward pass over and the shard works on.
  void gather(const Work& work, int tensor, int from) {
    const std::string name = name_of(tensor);
    const int to = builder_.device_of(work.shard), layer = net_.tensor(tensor).producer;
    const Interval has = builder_.rows(from), wanted = builder_.rows(work.shard);
    const Interval both = intersection(has, wanted);
    if (both.is_empty()) return;
    if (from == to) {
      builder_.emit_copy(
          fmt::format("keep {} @{}", name, to), stages::send_activations, layer,
          {{to, StreamKind::copy}},
          {{builder_.tensor(from, tensor, both), builder_.tensor(work.shard, tensor, both)}});
      return;
    }
    for (const Interval& some : message_rows(both, buffers::row_bytes(net_, tensor))) {
      const std::string rows =
          some.count() == both.count() ? "" : fmt::format(", rows {}-{}", some.begin, some.end);
      builder_.emit_transfer(
          fmt::format("send {}{}", name, rows), stages::send_activations, layer, from, to,
          {{builder_.tensor(from, tensor, some), builder_.tensor(work.shard, tensor, some)}},
          When::every_micro_batch, full_duplex);
    }
  }

  // In rounds in which every device sends one while it receives one.
  void emit_forward() {
    for (size_t layer = 0; layer < net_.layers.size(); ++layer) {
      stages::emit_forward(builder_, static_cast<int>(layer), StreamKind::control);
      for (int round = 0; round < builder_.devices(); ++round) {
        for (const Work& work : work_) {
          const int from = (builder_.device_of(work.shard) + round) % builder_.devices();
          for (const int tensor : work.needs.after[layer]) gather(work, tensor, from);
        }
      }
      if (to_all_) send_to_others(static_cast<int>(layer));
    }
  }

  // A layer's own output: not what is written over by the next one, nor a loss.
  [[nodiscard]] bool is_final(int layer, int tensor) const {
    const Layer& l = net_.layer(layer);
    if (l.is_result() || net_.makes_views(layer)) return false;
    const std::vector<int>& users = net_.tensor(tensor).consumers;
    return std::none_of(users.begin(), users.end(), [&](int user) {
      return net_.layer(user).runs_in_place || net_.layer(user).fused_into == layer;
    });
  }
  // The rows of `from` that no work on `to` gathers after the layer.
  [[nodiscard]] std::vector<Interval> not_gathered(int layer, int tensor, int from, int to) const {
    std::vector<Interval> rest{builder_.rows(from)};
    for (const Work& work : work_) {
      const std::vector<int>& sent = work.needs.after[size_t(layer)];
      if (builder_.device_of(work.shard) != to) continue;
      if (std::find(sent.begin(), sent.end(), tensor) == sent.end()) continue;
      const Interval taken = builder_.rows(work.shard);
      std::vector<Interval> left;
      for (const Interval& some : rest) {
        left.push_back({some.begin, std::min(some.end, taken.begin)});
        left.push_back({std::max(some.begin, taken.end), some.end});
      }
      std::erase_if(left, [](const Interval& some) { return some.is_empty(); });
      rest = std::move(left);
    }
    return rest;
  }
  // What others do not need, so that every device has every output, as published.
  void send_to_others(int layer) {
    for (const int tensor : net_.layer(layer).outputs) {
      if (!is_final(layer, tensor)) continue;
      const int64_t row_bytes = buffers::row_bytes(net_, tensor);
      for (int round = 1; round < builder_.devices(); ++round) {
        for (int to = 0; to < builder_.devices(); ++to) {
          const int from = (to + round) % builder_.devices();
          for (const Interval& some : not_gathered(layer, tensor, from, to)) {
            const std::string what =
                fmt::format("{} for all, rows {}-{}", name_of(tensor), some.begin, some.end);
            builder_.emit_transfer("send " + what, stages::send_activations, layer, from, to,
                                   {{builder_.tensor(from, tensor, some),
                                     builder_.transient(to, what, some.count() * row_bytes)}},
                                   When::every_micro_batch, full_duplex);
          }
        }
      }
    }
  }

  void emit_report() {
    stages::emit_report(builder_, true, StreamKind::control);
    updates_.emit_found_inf(0, groups_.weights);
  }

  // Some of the rows can be worked on by themselves.
  [[nodiscard]] bool takes_some_rows(int layer) const {
    return net_.layer(layer).has(TANDEM_SAVES_NOTHING) && !division_.is_shared(layer);
  }

  void send_activation_gradients(int layer, const GradientMessage& message, int device) {
    const Layer& l = net_.layer(layer);
    const BackwardRows& part = parts_[message.part];
    const int from = work_[message.part].shard, to = weight_work(device).shard;
    std::vector<CopySegment> segments;
    for (const int output : l.outputs) {
      if (!net_.tensor(output).has_gradient) continue;
      const auto& [begin, end] = message.rows;
      if (!sent_.emplace(from, to, net_.gradient_of(output), begin, end).second) continue;
      segments.push_back({builder_.tensor_gradient(from, output, message.rows),
                          builder_.tensor_gradient(to, output, message.rows)});
    }
    if (segments.empty()) return;
    const bool is_whole = message.rows.count() == part.rows.count();
    builder_.emit_transfer(
        fmt::format(
            "send {} activation gradients{}{}", l.name,
            part.is_own() ? "" : fmt::format(" of @{}", part.forward_on),
            is_whole ? "" : fmt::format(", rows {}-{}", message.rows.begin, message.rows.end)),
        stages::send_activation_gradients, layer, part.device, device, std::move(segments),
        When::every_micro_batch, full_duplex);
  }

  // Of rows that it has from others, a device waits for the last activations: meanwhile it goes
  // backward over its own, down to the first activation gradients that are sent to W.
  void emit_backward() {
    const auto layers = static_cast<int>(net_.layers.size());
    int top = layers - 1;
    while (top > 0 && !net_.layer(top).wants_backward_weights) --top;
    emit_activation_gradients(top, layers, true);
    for (const Work& work : work_) {
      for (const int layer : work.needs.again) builder_.emit_forward(work.shard, layer);
    }
    emit_activation_gradients(top, layers, false);
    for (int layer = top; layer >= 0;) {
      emit_weights(layer);
      const int above = layer + 1;
      do --layer;
      while (layer >= 0 && !net_.layer(layer).wants_backward_weights);
      emit_activation_gradients(layer, above, true);
      emit_activation_gradients(layer, above, false);
    }
  }

  [[nodiscard]] std::vector<GradientMessage> messages_of(int layer) const {
    const Layer& l = net_.layer(layer);
    if (!l.wants_backward_weights) return {};
    return gradient_messages(parts_, division_.of(layer).size(),
                             buffers::row_bytes(net_, l.outputs[0]));
  }

  // Down from layer `above` - 1 to the gradients of `layer`'s outputs, which are sent (-1: to the
  // end): of E's own rows, or of others'. While those of some rows travel, the next are computed.
  void emit_activation_gradients(int layer, int above, bool own) {
    const std::vector<GradientMessage> messages =
        layer < 0 ? std::vector<GradientMessage>() : messages_of(layer);
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (parts_[part].is_own() != own) continue;
      const std::vector<Interval> passes = passes_some_rows(net_, layer, above)
                                               ? pass_rows(parts_, part, messages)
                                               : std::vector<Interval>{parts_[part].rows};
      for (const Interval& rows : passes) {
        for (int l = above; l-- > layer + 1;) {
          emit_activation_gradient(work_[part].shard, l, rows);
        }
        for (const GradientMessage& message : messages) {
          if (message.part != part || message.rows.begin < rows.begin ||
              message.rows.end > rows.end) {
            continue;
          }
          send_activation_gradients(layer, message, division_.of(layer)[message.target].device);
        }
      }
    }
  }

  void emit_activation_gradient(int shard, int layer, Interval rows) {
    if (!builder_.emit_backward_data(shard, layer, backward_data_stage, rows)) return;
    for (const int input : net_.layer(layer).inputs) forget_sent(shard, input, rows);
  }
  // W has another gradient than the one that is there now.
  void forget_sent(int shard, int tensor, Interval rows) {
    const int root = net_.gradient_of(tensor);
    for (auto at = sent_.begin(); at != sent_.end();) {
      const auto& [from, to, sent, begin, end] = *at;
      const bool is_written = from == shard && sent == root && rows.overlaps({begin, end});
      at = is_written ? sent_.erase(at) : std::next(at);
    }
  }

  void emit_weights(int layer) {
    const std::vector<Placement>& shares = division_.of(layer);
    for (size_t i = 0; i < shares.size(); ++i) {
      const int shard = weight_work(shares[i].device).shard;
      if (!takes_some_rows(layer)) {
        if (division_.is_divided(layer)) {
          emit_gradients(layer, shares[i], builder_.rows(shard), false);
        } else {
          builder_.emit_backward_weights(shard, layer, backward_weights_stage);
        }
        continue;
      }
      bool adds = false;
      for (const GradientMessage& message : messages_of(layer)) {
        if (message.target != i) continue;
        emit_gradients(layer, shares[i], message.rows, adds);
        adds = true;
      }
    }
    for (const Placement& share : shares) emit_update(layer, share);
  }

  void emit_gradients(int layer, const Placement& share, Interval rows, bool adds) {
    const int shard = weight_work(share.device).shard;
    PlanBinding use = builder_.describe(shard, layer);
    const bool is_whole = rows.count() == builder_.rows(shard).count();
    if (!is_whole) builder_.slice_rows(use, shard, rows);
    if (division_.is_divided(layer)) builder_.slice_outputs(use, share.interval);
    builder_.emit_pass(builder_.label(LayerPass::backward_weights, layer, shard) +
                           (is_whole ? "" : fmt::format(", rows {}-{}", rows.begin, rows.end)),
                       backward_weights_stage,
                       {builder_.add_binding(std::move(use)), LayerPass::backward_weights, adds});
  }

  void emit_update(int layer, const Placement& share) {
    const std::string& name = net_.layer(layer).name;
    if (division_.is_divided(layer)) {
      builder_.emit_update(fmt::format("update {} @{}", name, share.device), update_weights_stage,
                           share.device, slices_of(net_, layer, share.interval),
                           StreamKind::update);
      return;
    }
    updates_.add(share.device, update_weights_stage, name, weights_completed_by(net_, layer));
  }

  AsymmetricGroups groups_;
  WeightDivision division_;
  bool to_all_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  std::vector<BackwardRows> parts_;
  std::vector<Work> work_;  // of parts_, then W's
  // What W has: shards of E and W, a gradient's memory, rows. Layers before a sum share the memory
  // of their gradients.
  std::set<std::tuple<int, int, int, int64_t, int64_t>> sent_;
};

}  // namespace

Plan asymmetric_plan(const StrategyInputs& inputs, const AsymmetricGroups& groups,
                     Division division, bool to_all) {
  WeightDivision divided(*inputs.net, groups.weights, division);
  Plan plan = Asymmetric(inputs, groups, std::move(divided), to_all).build();
  plan.options = asymmetric_options().write({groups.to_text(), to_text(division), to_all});
  plan.notes.push_back("slices: " + to_text(division) +
                       (to_all ? "; outputs go to all other devices" : ""));
  return plan;
}

}  // namespace tandem
