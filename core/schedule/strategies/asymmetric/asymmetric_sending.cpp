#include "core/schedule/strategies/asymmetric/asymmetric_sending.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/strategies/common/buckets.h"
#include "core/schedule/strategies/common/collectives.h"

namespace tandem {

namespace {

constexpr int routes_of_each = 2;

std::vector<WeightChunk> cut(const WeightShares& shares, int layers) {
  constexpr int64_t chunk_bytes = int64_t{2} << 20, most = 32;
  std::vector<WeightChunk> chunks;
  for (int layer = 0; layer < layers; ++layer) {
    for (size_t share = 0; share < shares.of(layer).size(); ++share) {
      const std::vector<Interval> ranges = shares.ranges(layer, shares.of(layer)[share]);
      const auto count = static_cast<int>(
          std::clamp(total_bytes(ranges) / chunk_bytes, int64_t{routes_of_each}, most));
      for (int number = 0; number < count; ++number) {
        WeightChunk chunk{
            layer, static_cast<int>(share), number, shares.of(layer)[share].device, {}, {}};
        for (const Interval& range : ranges) {
          const Interval part = slice_of(range, number, count);
          if (!part.is_empty()) chunk.ranges.push_back(part);
        }
        if (!chunk.ranges.empty()) chunks.push_back(std::move(chunk));
      }
    }
  }
  return chunks;
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
  const auto number = [&](const WeightChunk& chunk) {
    const auto at = std::find(groups.weights.begin(), groups.weights.end(), chunk.owner);
    return size_t(at - groups.weights.begin());
  };
  std::vector<double> bytes(groups.weights.size(), 0);
  for (const WeightChunk& chunk : chunks) {
    bytes[number(chunk)] += static_cast<double>(total_bytes(chunk.ranges));
  }
  const auto routes =
      broadcast_routes(inputs, loads_of(inputs, others), groups.weights, bytes, routes_of_each);
  for (WeightChunk& chunk : chunks) {
    chunk.line = routes[number(chunk)][size_t(chunk.number % routes_of_each)].line;
  }
  return chunks;
}

std::vector<WeightHop> weight_hops(const std::vector<WeightChunk>& chunks) {
  std::vector<WeightHop> hops;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const std::vector<int>& line = chunks[i].line;
    const auto at = std::find(line.begin(), line.end(), chunks[i].owner);
    for (auto to = at; std::next(to) != line.end(); ++to) hops.push_back({i, *to, *std::next(to)});
    for (auto to = at; to != line.begin(); --to) hops.push_back({i, *to, *std::prev(to)});
  }
  return hops;
}

void emit_broadcasts(PlanBuilder& builder, const WeightShares& shares,
                     const std::vector<WeightChunk>& chunks) {
  for (const WeightHop& hop : weight_hops(chunks)) {
    const WeightChunk& chunk = chunks[hop.chunk];
    const bool is_slice = shares.of(chunk.layer)[size_t(chunk.share)].is_slice;
    std::vector<CopySegment> segments;
    for (const Interval& range : chunk.ranges) {
      segments.push_back({builder.weights(hop.from, range), builder.weights(hop.to, range)});
    }
    builder.emit_transfer(
        fmt::format("broadcast {}{} {}", builder.net().layers[size_t(chunk.layer)].name,
                    is_slice ? fmt::format(" of @{}", chunk.owner) : "", chunk.number),
        Stage::broadcast, chunk.layer, hop.from, hop.to, std::move(segments),
        When::last_micro_batch, full_duplex);
  }
}

}  // namespace tandem
