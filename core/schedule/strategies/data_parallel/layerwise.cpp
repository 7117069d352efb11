// docs/design/strategies.md §2: every layer's gradient travels as soon as it exists, while the
// layers before it go backward; the new weights come back while the next step goes forward, those
// that it needs first first. Small layers share a bucket. What must not queue behind gradients
// (losses, statistics of the whole batch) has streams of its own.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

namespace {

// Below it a message's own cost counts; around a ring travel parts, and each of them should take
// several times as long as a message costs.
int64_t bucket_bytes(const StrategyInputs& in, const std::string& reduction) {
  constexpr int64_t usual = int64_t{4} << 20, most = int64_t{64} << 20;
  constexpr double times_latency = 8;
  if (in.options.bucket > 0) return in.options.bucket;
  if (reduction != "ring" || in.devices < 2) return usual;
  const std::vector<int> order = device_order(in);
  double part = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const int from = order[i], to = order[(i + 1) % order.size()];
    const double latency = transfer_seconds(in, from, to, 0);
    const double per_byte = (transfer_seconds(in, from, to, usual) - latency) / double(usual);
    part = std::max(part, times_latency * latency / per_byte);
  }
  constexpr int halves = 2;
  const double wanted = part * halves * in.devices;
  if (!(wanted < static_cast<double>(most))) return most;
  return std::max(static_cast<int64_t>(wanted), usual);
}

// When each bucket's gradient is complete, by the costs of the device with the most rows.
std::vector<double> ready_times(const StrategyInputs& in, const std::vector<Bucket>& buckets) {
  const Net& net = *in.net;
  const int64_t rows = share(net.batch, in.devices, 0).count();
  std::vector<double> ready(buckets.size(), 0);
  double now = 0;
  for (int layer = static_cast<int>(net.layers.size()); layer-- > 0;) {
    const Layer& l = net.layers[size_t(layer)];
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

std::vector<Move> moves_of(const StrategyInputs& in, const std::vector<Bucket>& buckets,
                           const Collective& collective) {
  MoveTimes times;
  times.ready = ready_times(in, buckets);
  for (const Bucket& bucket : buckets) times.reduction.push_back(collective.seconds(bucket));
  times.back = times.reduction;
  return order_moves(buckets, times, collective.is_duplex(), in.clips_gradients);
}

}  // namespace

std::vector<StrategyVariant> layerwise_variants(const StrategyInputs& inputs) {
  if (!inputs.options.reduce.empty() || inputs.devices < 2) return {{"", inputs.options}};
  std::vector<StrategyVariant> result;
  for (const std::string reduction : {"serial", "tree", "ring"}) {
    if (inputs.devices == 2 && reduction == "tree") continue;  // the same as serial
    result.push_back({"--reduce " + reduction, inputs.options});
    result.back().options.reduce = reduction;
    result.back().options.bucket = bucket_bytes(inputs, reduction);
  }
  return result;
}

Plan build_layerwise(const StrategyInputs& inputs) {
  PlanBuilder builder(inputs, "layerwise", PlanBuilder::Purpose::training);
  const std::string reduction = inputs.options.reduce.empty() ? "ring" : inputs.options.reduce;
  const int64_t bytes = bucket_bytes(inputs, reduction);
  const std::vector<Bucket> buckets = make_buckets(builder.net(), bytes);
  const std::unique_ptr<Collective> collective = Collective::make(reduction, builder);
  const std::vector<Move> moves = moves_of(inputs, buckets, *collective);
  builder.plan().notes.push_back(
      fmt::format("reduction: {}; {} bucket{} of gradients, closed at {}", reduction,
                  buckets.size(), buckets.size() == 1 ? "" : "s", human_bytes(bytes)));

  stages::emit_inputs(builder);
  stages::emit_forward(builder, StreamKind::control);
  stages::emit_report(builder, true, StreamKind::control);
  if (collective->updates_everywhere()) {
    Updates(builder).emit_found_inf(0, device_order(inputs));
  }
  size_t next = 0;
  for (int layer = static_cast<int>(builder.net().layers.size()); layer-- > 0;) {
    stages::emit_backward(builder, layer, layer + 1, Stage::backward, StreamKind::control);
    for (; next < moves.size(); ++next) {
      const Bucket& bucket = buckets[size_t(moves[next].bucket)];
      if (bucket.layer < layer) break;
      if (moves[next].is_return) {
        // A clipped update waits for all gradients; others follow their reduction.
        if (inputs.clips_gradients) collective->emit_update(bucket);
        collective->emit_return(bucket);
      } else {
        collective->emit_reduction(bucket);
        if (!inputs.clips_gradients) collective->emit_update(bucket);
      }
    }
  }
  return builder.take();
}

}  // namespace tandem
