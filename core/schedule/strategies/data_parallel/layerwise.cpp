#include "core/schedule/strategies/data_parallel/layerwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text/strings.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"

namespace tandem {
namespace {

// In smaller buckets the latency of a message counts. A ring sends parts; each of them should take
// several latencies.
int64_t default_bucket(const StrategyInputs& in, const std::string& reduction) {
  constexpr int64_t usual = int64_t{4} << 20, most = int64_t{64} << 20;
  constexpr double times_latency = 8;
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

// Fills in options that were not given.
LayerwiseOptions completed(const StrategyInputs& in, LayerwiseOptions options) {
  if (options.reduce.empty()) options.reduce = "ring";
  if (options.bucket == 0) options.bucket = default_bucket(in, options.reduce);
  return options;
}

std::vector<StrategyVariant> layerwise_variants(const StrategyInputs& inputs) {
  LayerwiseOptions options = layerwise_options().read(inputs.options);
  if (!options.reduce.empty() || inputs.devices < 2) return {{"", inputs.options}};
  std::vector<StrategyVariant> result;
  for (const std::string reduction : {"serial", "tree", "ring"}) {
    if (inputs.devices == 2 && reduction == "tree") continue;  // the same as serial
    options.reduce = reduction;
    result.push_back(
        {"--reduce " + reduction, layerwise_options().write(completed(inputs, options))});
  }
  return result;
}

std::vector<StrategyOptions> layerwise_lossless_cases(int) {
  std::vector<StrategyOptions> cases;
  for (const char* reduce : {"serial", "tree", "ring"}) {
    for (const int64_t bucket : {int64_t{0}, int64_t{1} << 16}) {
      cases.push_back(layerwise_options().write({reduce, bucket}));
    }
  }
  return cases;
}

Plan build_layerwise(const StrategyInputs& inputs) {
  const LayerwiseOptions options = completed(inputs, layerwise_options().read(inputs.options));
  PlanBuilder builder(inputs, "layerwise", PlanBuilder::Purpose::training);
  const std::vector<Bucket> buckets = make_buckets(builder.net(), options.bucket);
  const std::unique_ptr<Collective> collective = Collective::make(options.reduce, builder);
  const std::vector<BucketTransfer> transfers = transfers_of(inputs, buckets, *collective);
  builder.plan().options = layerwise_options().write(options);
  builder.plan().notes.push_back(
      fmt::format("reduction: {}; {} bucket{} of gradients, closed at {}", options.reduce,
                  buckets.size(), buckets.size() == 1 ? "" : "s", human_bytes(options.bucket)));

  stages::emit_inputs(builder);
  stages::emit_forward(builder, StreamKind::control);
  stages::emit_report(builder, true, StreamKind::control);
  if (collective->updates_everywhere()) {
    Updates(builder).emit_found_inf(0, device_order(inputs));
  }
  size_t next = 0;
  for (int layer = static_cast<int>(builder.net().layers.size()); layer-- > 0;) {
    stages::emit_backward(builder, layer, layer + 1, stages::backward, StreamKind::control);
    for (; next < transfers.size(); ++next) {
      const Bucket& bucket = buckets[size_t(transfers[next].bucket)];
      if (bucket.layer < layer) break;
      if (transfers[next].is_broadcast) {
        // A clipped update waits for all gradients; others follow their reduction.
        if (inputs.clips_gradients) collective->emit_update(bucket);
        collective->emit_broadcast(bucket);
      } else {
        collective->emit_reduction(bucket);
        if (!inputs.clips_gradients) collective->emit_update(bucket);
      }
    }
  }
  return builder.take();
}

}  // namespace

const OptionTable<LayerwiseOptions>& layerwise_options() {
  static const auto table = [] {
    StrategyOption reduce = word_option(
        "--reduce", "how gradients are added up: serial (to the root), tree or ring (default)",
        {"serial", "tree", "ring"});
    reduce.resets = {"bucket"};
    return OptionTable<LayerwiseOptions>()
        .add(std::move(reduce), &LayerwiseOptions::reduce)
        .add(size_option("--bucket",
                         "layers share a message until it has so many bytes (default: 4MiB, for a "
                         "ring more where messages are slow to begin)"),
             &LayerwiseOptions::bucket);
  }();
  return table;
}

Strategy layerwise_strategy() {
  return {.name = "layerwise",
          .summary = "every layer's gradient travels as soon as it exists",
          .options = layerwise_options().options(),
          .build = &build_layerwise,
          .variants = &layerwise_variants,
          .lossless_cases = &layerwise_lossless_cases};
}

}  // namespace tandem
