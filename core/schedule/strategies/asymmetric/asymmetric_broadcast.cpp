#include "core/schedule/strategies/asymmetric/asymmetric_broadcast.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/strategies/common/buckets.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/stages.h"

namespace tandem {
namespace {

constexpr int routes_of_each = 2;

std::vector<WeightMessage> cut(const WeightDivision& division, int layers) {
  constexpr int64_t message_bytes = int64_t{2} << 20, most = 32;
  std::vector<WeightMessage> messages;
  for (int layer = 0; layer < layers; ++layer) {
    for (const Placement& channels : division.of(layer)) {
      const std::vector<Interval> ranges = division.ranges(layer, channels);
      const auto count = static_cast<int>(
          std::clamp(total_bytes(ranges) / message_bytes, int64_t{routes_of_each}, most));
      for (int number = 0; number < count; ++number) {
        WeightMessage message{layer, number, channels.device, {}, {}};
        for (const Interval& range : ranges) {
          const Interval part = slice_of(range, number, count);
          if (!part.is_empty()) message.ranges.push_back(part);
        }
        if (!message.ranges.empty()) messages.push_back(std::move(message));
      }
    }
  }
  return messages;
}

}  // namespace

std::vector<WeightMessage> weight_messages(const StrategyInputs& inputs,
                                           const AsymmetricGroups& groups,
                                           const WeightDivision& division, const Plan& others) {
  std::vector<WeightMessage> messages = cut(division, static_cast<int>(inputs.net->layers.size()));
  const auto number = [&](const WeightMessage& message) {
    const auto at = std::find(groups.weights.begin(), groups.weights.end(), message.owner);
    return size_t(at - groups.weights.begin());
  };
  std::vector<double> bytes(groups.weights.size(), 0);
  for (const WeightMessage& message : messages) {
    bytes[number(message)] += static_cast<double>(total_bytes(message.ranges));
  }
  const auto routes =
      broadcast_routes(inputs, LinkLoads(others, inputs.link.bandwidth, inputs.topology),
                       groups.weights, bytes, routes_of_each);
  for (WeightMessage& message : messages) {
    message.line = routes[number(message)][size_t(message.number % routes_of_each)].line;
  }
  return messages;
}

std::vector<WeightTransfer> weight_transfers(const std::vector<WeightMessage>& messages) {
  std::vector<WeightTransfer> transfers;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::vector<int>& line = messages[i].line;
    const auto at = std::find(line.begin(), line.end(), messages[i].owner);
    for (auto to = at; std::next(to) != line.end(); ++to)
      transfers.push_back({i, *to, *std::next(to)});
    for (auto to = at; to != line.begin(); --to) transfers.push_back({i, *to, *std::prev(to)});
  }
  return transfers;
}

void emit_broadcasts(PlanBuilder& builder, const WeightDivision& division,
                     const std::vector<WeightMessage>& messages) {
  for (const WeightTransfer& transfer : weight_transfers(messages)) {
    const WeightMessage& message = messages[transfer.message];
    const bool is_divided = division.is_divided(message.layer);
    builder.emit_transfer(
        fmt::format("broadcast {}{} {}", builder.net().layer(message.layer).name,
                    is_divided ? fmt::format(" of @{}", message.owner) : "", message.number),
        stages::broadcast, message.layer, transfer.from, transfer.to,
        builder.copies(&PlanRegions::weights, transfer.from, transfer.to, message.ranges),
        When::last_micro_batch, full_duplex);
  }
}

}  // namespace tandem
