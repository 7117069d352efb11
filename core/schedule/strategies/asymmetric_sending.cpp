#include "core/schedule/strategies/asymmetric_sending.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "core/schedule/strategies/buckets.h"
#include "core/schedule/strategies/collectives.h"

namespace tandem {

namespace {

constexpr int routes_of_each = 2;

int64_t bytes_of(const WeightChunk& chunk) {
  return total_bytes(chunk.ranges);
}

std::vector<WeightChunk> cut(const WeightShares& shares, int layers) {
  constexpr int64_t chunk_bytes = int64_t{2} << 20, most = 32;
  std::vector<WeightChunk> chunks;
  for (int layer = 0; layer < layers; ++layer) {
    for (size_t share = 0; share < shares.of(layer).size(); ++share) {
      const std::vector<WeightRange> ranges = shares.ranges(layer, shares.of(layer)[share]);
      const auto count = static_cast<int>(
          std::clamp(total_bytes(ranges) / chunk_bytes, int64_t{routes_of_each}, most));
      for (int number = 0; number < count; ++number) {
        WeightChunk chunk{
            layer, static_cast<int>(share), number, shares.of(layer)[share].device, {}, {}};
        for (const WeightRange& range : ranges) {
          const WeightRange part = slice_of(range, number, count);
          if (part.bytes > 0) chunk.ranges.push_back(part);
        }
        if (!chunk.ranges.empty()) chunks.push_back(std::move(chunk));
      }
    }
  }
  return chunks;
}

// By layer: when, after the begin of backward, W has updated it.
std::vector<double> updated_at(const StrategyInputs& inputs, const AsymmetricGroups& groups,
                               const WeightShares& shares) {
  const Net& net = *inputs.net;
  const int64_t rows = share(net.batch, static_cast<int>(groups.errors.size()), 0).count();
  std::vector<double> result(net.layers.size(), 0);
  std::map<int, double> free;  // by device of W
  double errors = 0;           // E has those of the layer's outputs
  for (size_t layer = net.layers.size(); layer-- > 0;) {
    const Layer& l = net.layers[layer];
    const auto& of = shares.of(static_cast<int>(layer));
    for (const WeightShare& share : of) {
      const double seconds = inputs.costs->pass_seconds(net, static_cast<int>(layer),
                                                        LayerPass::backward_weights, net.batch);
      double& done = free[share.device];
      done = std::max(done, errors) + seconds / static_cast<double>(of.size());
      result[layer] = std::max(result[layer], done);
    }
    if (l.wants_backward_data) {
      errors +=
          inputs.costs->pass_seconds(net, static_cast<int>(layer), LayerPass::backward_data, rows);
    }
  }
  if (!inputs.clips_gradients) return result;
  const double last = *std::max_element(result.begin(), result.end());
  return std::vector<double>(result.size(), last);
}

// The last layers, with up to two thirds of all weights.
void find_late(std::vector<WeightChunk>& chunks) {
  std::map<int, int64_t> bytes;  // by layer
  int64_t all = 0, late = 0;
  for (const WeightChunk& chunk : chunks) {
    bytes[chunk.layer] += bytes_of(chunk);
    all += bytes_of(chunk);
  }
  int first = std::numeric_limits<int>::max();
  for (auto layer = bytes.rbegin(); layer != bytes.rend(); ++layer) {
    late += layer->second;
    if (3 * late > 2 * all) break;
    first = layer->first;
  }
  for (WeightChunk& chunk : chunks) chunk.is_late = chunk.layer >= first;
}

// Of `seconds_a_byte` one after the other.
std::vector<WeightChunk> in_order(std::vector<WeightChunk> chunks, const std::vector<double>& ready,
                                  double seconds_a_byte) {
  std::vector<WeightChunk> result;
  double now = 0;
  while (!chunks.empty()) {
    // By layer, then number, so that all who share it send at once.
    const auto before = [&](const WeightChunk& a, const WeightChunk& b) {
      const double a_from = std::max(ready[size_t(a.layer)], now);
      const double b_from = std::max(ready[size_t(b.layer)], now);
      if (a_from != b_from) return a_from < b_from;
      return std::tie(a.layer, a.number, a.share) < std::tie(b.layer, b.number, b.share);
    };
    const auto next = std::min_element(chunks.begin(), chunks.end(), before);
    now = std::max(now, ready[size_t(next->layer)]) +
          static_cast<double>(bytes_of(*next)) * seconds_a_byte;
    result.push_back(std::move(*next));
    chunks.erase(next);
  }
  return result;
}

// The links' loads by all copies of a plan.
LinkLoads loads_of(const StrategyInputs& inputs, const Plan& plan) {
  LinkLoads loads(inputs.link.bandwidth, inputs.topology);
  for (const Task& task : plan.tasks) {
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || task.streams.size() < 2) continue;
    for (const CopySegment& segment : copy->segments) {
      loads.add(task.streams[1].device, task.streams[0].device,
                static_cast<double>(plan.bytes(segment.source)));
    }
  }
  return loads;
}

}  // namespace

std::vector<WeightChunk> weight_chunks(const StrategyInputs& inputs, const AsymmetricGroups& groups,
                                       const WeightShares& shares, const Plan& others) {
  std::vector<WeightChunk> chunks = cut(shares, static_cast<int>(inputs.net->layers.size()));
  find_late(chunks);
  const auto number = [&](const WeightChunk& chunk) {
    const auto at = std::find(groups.weights.begin(), groups.weights.end(), chunk.owner);
    return size_t(at - groups.weights.begin());
  };
  std::vector<double> bytes(groups.weights.size(), 0);
  double all = 0;
  for (const WeightChunk& chunk : chunks) {
    bytes[number(chunk)] += static_cast<double>(bytes_of(chunk));
    all += static_cast<double>(bytes_of(chunk));
  }
  LinkLoads alone(inputs.link.bandwidth, inputs.topology);
  const auto routes =
      broadcast_routes(inputs, loads_of(inputs, others), groups.weights, bytes, routes_of_each);
  for (WeightChunk& chunk : chunks) {
    chunk.line = routes[number(chunk)][size_t(chunk.number % routes_of_each)].line;
    add_line(alone, chunk.line, chunk.owner, static_cast<double>(bytes_of(chunk)));
  }
  return in_order(std::move(chunks), updated_at(inputs, groups, shares),
                  all > 0 ? alone.busiest().first / all : 0);
}

std::vector<WeightHop> weight_hops(const std::vector<WeightChunk>& chunks, size_t owners) {
  std::multimap<size_t, WeightHop> hops;  // by turn
  const size_t behind = 2 * owners;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const std::vector<int>& line = chunks[i].line;
    const auto at = std::find(line.begin(), line.end(), chunks[i].owner);
    for (auto to = at; std::next(to) != line.end(); ++to) {
      hops.insert({i + size_t(to - at) * behind, {i, *to, *std::next(to)}});
    }
    for (auto to = at; to != line.begin(); --to) {
      hops.insert({i + size_t(at - to) * behind, {i, *to, *std::prev(to)}});
    }
  }
  std::vector<WeightHop> result;
  for (const auto& [turn, hop] : hops) result.push_back(hop);
  return result;
}

}  // namespace tandem
