#include "core/schedule/strategies/data_parallel/two_phase.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text/strings.h"
#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/fastest_variant.h"
#include "core/schedule/strategies/common/stages.h"

namespace tandem {
namespace {

// Bytes of the FC part's new weights that can be broadcast before the backward pass of the
// convolutions ends, by the costs. More would delay the gradients of the convolutions.
int64_t bytes_to_broadcast_early(const PlanBuilder& builder, const Parts& parts) {
  const StrategyInputs& in = builder.inputs();
  const Net& net = builder.net();
  const int64_t all = total_bytes(weight_ranges(net, parts.fc_weights));
  if (parts.conv_weights.empty() || in.devices == 1) return all;
  const int64_t rows = builder.rows(0).count();
  double left = 0;
  for (int layer = 0; layer < parts.split_layer; ++layer) {
    const Layer& l = net.layer(layer);
    left += in.costs->statistics_seconds(net, layer, LayerPass::backward_statistics, rows);
    for (const auto& [wanted, pass] :
         {std::pair(l.wants_backward_data, LayerPass::backward_data),
          std::pair(l.wants_backward_weights, LayerPass::backward_weights)}) {
      if (wanted) left += in.costs->pass_seconds(net, layer, pass, rows);
    }
  }
  const auto transfers = [&](int64_t bytes) {  // from or to each other device in turn
    double seconds = 0;
    for (int device = 1; device < in.devices; ++device) {
      seconds += transfer_seconds(in, device, 0, bytes);
    }
    return seconds;
  };
  const double latency = transfers(0), bytes_seconds = transfers(all) - latency;
  left -= transfers(all) + latency + in.costs->moving_seconds("add", (in.devices + 1) * all) +
          in.costs->moving_seconds("update", (3 + 2 * in.solver_states) * all);
  if (left >= bytes_seconds) return all;
  constexpr double least = 0.05;  // of all: less is not worth a message
  const double share = left / bytes_seconds;
  return share < least ? 0 : static_cast<int64_t>(share * static_cast<double>(all));
}

// Weights of the layers, in the order in which the next forward pass needs them.
struct LayerRanges {
  int layer = -1;
  std::vector<Interval> ranges;
};
std::vector<LayerRanges> ranges_by_layer(const Net& net, const std::vector<int>& weights) {
  std::vector<LayerRanges> result;
  std::set<int> to_send(weights.begin(), weights.end());
  for (size_t layer = 0; layer < net.layers.size(); ++layer) {
    std::vector<int> mine;
    for (const int weight : net.layers[layer].weights) {
      if (to_send.erase(weight) != 0) mine.push_back(weight);
    }
    if (!mine.empty()) result.push_back({static_cast<int>(layer), weight_ranges(net, mine)});
  }
  return result;
}

// Moves the first so many bytes out of them.
std::vector<Interval> take_first(std::vector<LayerRanges>& layers, int64_t bytes) {
  std::vector<Interval> taken;
  for (LayerRanges& layer : layers) {
    for (Interval& range : layer.ranges) {
      const int64_t end = range.begin + std::min(range.count(), bytes / 64 * 64);
      const Interval first{range.begin, range.count() <= bytes ? range.end : end};
      if (first.is_empty()) continue;
      bytes -= first.count();
      range.begin = first.end;
      taken.push_back(first);
    }
    std::erase_if(layer.ranges, [](const Interval& range) { return range.is_empty(); });
  }
  return merged(taken);
}

void broadcast_layer_by_layer(PlanBuilder& builder, const std::vector<LayerRanges>& layers) {
  for (const auto& [layer, ranges] : layers) {
    if (ranges.empty()) continue;
    stages::emit_broadcast(builder, builder.net().layer(layer).name, layer, ranges,
                           When::last_micro_batch);
  }
}

PlanBuilder builder_of(const StrategyInputs& inputs) {
  return {inputs, "two_phase", PlanBuilder::Purpose::training};
}

void emit_step(PlanBuilder& builder, const Parts& parts, bool hidden) {
  const Net& net = builder.net();
  const std::vector<Interval> fc = weight_ranges(net, parts.fc_weights);
  const std::vector<Interval> conv = weight_ranges(net, parts.conv_weights);
  std::vector<LayerRanges> late = ranges_by_layer(net, parts.fc_weights);
  const std::vector<Interval> early = take_first(late, bytes_to_broadcast_early(builder, parts));

  stages::emit_inputs(builder);
  if (!hidden) {
    stages::emit_broadcast(builder, "weights", -1, {all_weights(net)}, When::first_micro_batch);
  }
  stages::emit_forward(builder);
  stages::emit_report(builder, true);
  const int layers = static_cast<int>(net.layers.size());
  stages::emit_backward(builder, parts.split_layer, layers, stages::backward_fc);
  stages::emit_reduction(builder, "fc gradients", fc, stages::send_fc_gradients, stages::update_fc);
  builder.emit_norms("norms fc @0", stages::update_fc, 0, parts.fc_weights);
  const auto update_fc = [&] {
    builder.emit_update("update fc @0", stages::update_fc, 0, parts.fc_weights);
    if (hidden && !early.empty()) {
      stages::emit_broadcast(builder, "fc weights", -1, early, When::last_micro_batch);
    }
  };
  // A clipped update needs the norm of all gradients: then only the copies overlap.
  const bool waits = builder.inputs().clips_gradients && !parts.conv_weights.empty();
  if (!waits) update_fc();
  stages::emit_backward(builder, 0, parts.split_layer, stages::backward_conv);
  if (parts.conv_weights.empty()) return;
  stages::emit_reduction(builder, "conv gradients", conv, stages::send_conv_gradients,
                         stages::update_conv);
  builder.emit_norms("norms conv @0", stages::update_conv, 0, parts.conv_weights);
  if (waits) update_fc();
  builder.emit_update("update conv @0", stages::update_conv, 0, parts.conv_weights);
  if (!hidden) return;
  broadcast_layer_by_layer(builder, ranges_by_layer(net, parts.conv_weights));
  broadcast_layer_by_layer(builder, late);
}

// In a net with more places to split than `max_places` only some are tried: evenly spaced ones,
// then, by golden-section search, some between the neighbors of the best, until they are closer
// than 1/finest of the net. The time of a trial is proportional to the layers, too.
constexpr size_t max_places = 128, spaced_places = 8, finest = 64;
// The time of a trial is proportional to the devices, too: of more than `max_searched_devices` only
// a few evenly spaced places are tried.
constexpr int max_searched_devices = 128;
constexpr size_t few_places = 4;

// Makes one micro-batch a step, so that each simulated step has an update.
StrategyInputs with_one_micro_batch(StrategyInputs inputs) {
  inputs.micro_batches_per_step = 1;
  return inputs;
}

double step_seconds_at(const StrategyInputs& inputs, const Parts& parts, bool hidden) {
  const StrategyInputs tried = with_one_micro_batch(inputs);
  PlanBuilder builder = builder_of(tried);
  emit_step(builder, parts, hidden);
  return simulated_step_seconds(tried, builder.plan());
}

// Tries places of the split and keeps the best.
class SplitSearch {
 public:
  SplitSearch(const StrategyInputs& inputs, bool hidden, const std::vector<int>& candidates)
      : inputs_(with_one_micro_batch(inputs)),
        builder_(builder_of(inputs_)),
        hidden_(hidden),
        candidates_(candidates) {}

  void search() {
    const size_t last = candidates_.size() - 1;
    // From the last place down, the later of two equal ones.
    const bool is_wide = inputs_.devices > max_searched_devices;
    const size_t places = is_wide ? few_places : last > max_places ? spaced_places : last;
    const size_t stride = std::max<size_t>(1, last / places);
    for (size_t i = last; i >= 1; i -= std::min(i, stride)) try_place(i);
    if (stride == 1 || is_wide) return;
    narrow(best_place_ > stride ? best_place_ - stride : 1, std::min(last, best_place_ + stride));
  }

  [[nodiscard]] const Parts& parts() const { return best_; }
  [[nodiscard]] double seconds() const { return best_seconds_; }
  // "", or " of 5 places that were tried"
  [[nodiscard]] std::string tried_text() const {
    if (inputs_.devices <= max_searched_devices) return "";
    return fmt::format(" of {} places that were tried", tried_.size());
  }

 private:
  double try_place(size_t place) {
    const auto [known, is_new] = tried_.try_emplace(place);
    if (!is_new) return known->second;
    Parts parts = parts_at(*inputs_.net, candidates_[place]);
    builder_.restart();
    emit_step(builder_, parts, hidden_);
    const double seconds = simulated_step_seconds(inputs_, builder_.plan());
    known->second = seconds;
    if (best_.fc_weights.empty() || seconds < best_seconds_) {
      best_ = std::move(parts);
      best_seconds_ = seconds;
      best_place_ = place;
    }
    return seconds;
  }

  void narrow(size_t first, size_t last) {
    constexpr double golden = 0.618;
    const auto step = size_t(golden * static_cast<double>(last - first));
    size_t low = last - step, high = first + step;
    while (low < high && last - first > candidates_.size() / finest) {
      if (try_place(high) <= try_place(low)) {
        first = std::exchange(low, high);
        high = first + last - low;
      } else {
        last = std::exchange(high, low);
        low = first + last - high;
      }
    }
  }

  StrategyInputs inputs_;
  PlanBuilder builder_;
  bool hidden_;
  const std::vector<int>& candidates_;
  std::map<size_t, double> tried_;
  Parts best_;
  double best_seconds_ = 0;
  size_t best_place_ = 0;
};

ChosenParts fastest_parts(const StrategyInputs& inputs, bool hidden) {
  const Net& net = *inputs.net;
  const std::vector<int> candidates = split_candidates(net);
  const auto name = [&](int layer) { return net.layer(layer).name; };
  if (candidates.size() < 2) {
    return {parts_at(net, 0),
            "auto",
            {fmt::format("'{}' is the only layer with weights to train: all is FC part",
                         name(candidates.front()))}};
  }
  SplitSearch search(inputs, hidden, candidates);
  search.search();
  const std::string split = name(search.parts().split_layer);
  return {search.parts(),
          split,
          {fmt::format("split at '{}', the smallest predicted step{}: {}", split,
                       search.tried_text(), human_seconds(search.seconds()))}};
}

Plan build_two_phase(const StrategyInputs& inputs) {
  TwoPhaseOptions options = two_phase_options().read(inputs.options);
  const ChosenParts chosen = choose_parts(inputs, options);
  PlanBuilder builder = builder_of(inputs);
  emit_step(builder, chosen.parts, options.hidden_broadcast);
  Plan plan = builder.take();
  plan.split_layer = inputs.net->layer(chosen.parts.split_layer).name;
  plan.notes = chosen.notes;
  options.split = chosen.split;
  plan.options = two_phase_options().write(options);
  return plan;
}

}  // namespace

const OptionTable<TwoPhaseOptions>& two_phase_options() {
  static const auto table =
      OptionTable<TwoPhaseOptions>()
          .add(flag_option("--plain-broadcast",
                           "send all new weights at the start of a step (default: "
                           "--hidden-broadcast)",
                           false, "--hidden-broadcast"),
               &TwoPhaseOptions::hidden_broadcast, "hidden_broadcast")
          .add(flag_option("--hidden-broadcast",
                           "broadcast new weights as soon as they exist (default)", true,
                           "--plain-broadcast"),
               &TwoPhaseOptions::hidden_broadcast)
          .include(parts_options());
  return table;
}

ChosenParts choose_parts(const StrategyInputs& inputs, const TwoPhaseOptions& options) {
  const Net& net = *inputs.net;
  const AlexNetTest test = test_alexnet_like(net, *inputs.costs, options);
  const auto at_p = [&]() -> std::optional<Parts> {
    if (!test.alexnet_like) return std::nullopt;
    Parts parts = parts_at(net, net.find_layer(test.p));
    if (parts.fc_weights.empty() || parts.conv_weights.empty()) return std::nullopt;
    return parts;
  };
  ChosenParts chosen;
  if (const std::optional<Parts> p = at_p(); options.split == "alexnet" && p) {
    chosen = {*p, test.p, {fmt::format("split at '{}', by the AlexNet-like test", test.p)}};
  } else if (options.split == "auto" || options.split == "alexnet") {
    chosen = fastest_parts(inputs, options.hidden_broadcast);
    if (options.split == "alexnet") {
      chosen.notes.front() += "; used because the AlexNet-like test gives no split";
    } else if (p && chosen.split != test.p) {
      chosen.notes.front() +=
          fmt::format("; --split alexnet would split at '{}': {}", test.p,
                      human_seconds(step_seconds_at(inputs, *p, options.hidden_broadcast)));
    }
  } else {
    chosen = {parts_at(net, options.split),
              options.split,
              {fmt::format("split at '{}', as given", options.split)}};
  }
  chosen.notes.push_back(test.explanation);
  return chosen;
}

Strategy two_phase_strategy() {
  Strategy strategy;
  strategy.name = "two_phase";
  strategy.summary = "FC gradients travel during the backward pass of the convolutions";
  strategy.options = two_phase_options().options();
  strategy.build = &build_two_phase;
  // The judgment of the AlexNet-like test is by measured times, whatever the split.
  strategy.wants_measured_costs = [](const StrategyOptions&) { return true; };
  strategy.lossless_cases = [](int) {
    return std::vector<StrategyOptions>{{}, {{"hidden_broadcast", false}}};
  };
  return strategy;
}

}  // namespace tandem
