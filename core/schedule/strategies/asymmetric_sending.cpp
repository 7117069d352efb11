#include "core/schedule/strategies/asymmetric_sending.h"

#include <algorithm>

#include "core/schedule/strategies/buckets.h"
#include "core/schedule/strategies/collectives.h"

namespace tandem {

AsymmetricRoutes asymmetric_routes(const StrategyInputs& inputs, const AsymmetricGroups& groups,
                                   const Plan& others) {
  LinkLoads loads(inputs.link.bandwidth, inputs.topology);
  for (const Task& task : others.tasks) {
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || task.streams.size() < 2) continue;
    for (const CopySegment& segment : copy->segments) {
      loads.add(task.streams[1].device, task.streams[0].device,
                static_cast<double>(others.bytes(segment.source)));
    }
  }
  const WeightShares shares(*inputs.net, groups.weights, !inputs.needs_norms);
  std::vector<double> bytes(groups.weights.size(), 0);
  for (int layer = 0; layer < static_cast<int>(inputs.net->layers.size()); ++layer) {
    for (const WeightShare& share : shares.of(layer)) {
      const auto at = std::find(groups.weights.begin(), groups.weights.end(), share.device);
      bytes[size_t(at - groups.weights.begin())] +=
          static_cast<double>(total_bytes(shares.ranges(layer, share)));
    }
  }
  return broadcast_routes(inputs, loads, groups.weights, bytes, broadcast_pieces);
}

std::vector<LayerMove> asymmetric_moves(const StrategyInputs& inputs,
                                        const AsymmetricGroups& groups,
                                        const WeightShares& shares) {
  const Net& net = *inputs.net;
  const int64_t rows = share(net.batch, static_cast<int>(groups.errors.size()), 0).count();
  const int from = groups.errors.front(), to = groups.weights.front();
  std::vector<Bucket> layers;
  MoveTimes times;
  double now = 0;  // E has the errors of the layer's outputs
  for (int layer = static_cast<int>(net.layers.size()); layer-- > 0;) {
    const Layer& l = net.layers[size_t(layer)];
    if (const size_t count = shares.of(layer).size(); count > 0) {
      const auto divided = static_cast<double>(count);
      const int64_t errors =
          element_count(net.tensors[size_t(l.outputs[0])].shape) / net.batch * rows * 4;
      layers.emplace_back().layer = layer;
      times.ready.push_back(now);
      times.reduction.push_back(divided * transfer_seconds(inputs, from, to, errors));
      times.update.push_back(
          inputs.costs->pass_seconds(net, layer, LayerPass::backward_weights, net.batch) / divided);
      times.back.push_back(
          transfer_seconds(inputs, to, from, total_bytes(weight_ranges(net, l.weights))));
    }
    if (l.wants_backward_data) {
      now += inputs.costs->pass_seconds(net, layer, LayerPass::backward_data, rows);
    }
  }
  std::vector<LayerMove> moves;
  for (const Move& move : order_moves(layers, times, false, inputs.clips_gradients)) {
    moves.push_back({layers[size_t(move.bucket)].layer, move.is_return});
  }
  return moves;
}

}  // namespace tandem
