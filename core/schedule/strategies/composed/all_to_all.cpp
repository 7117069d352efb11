#include "core/schedule/strategies/composed/all_to_all.h"

#include <algorithm>

#include "core/schedule/strategies/common/collectives.h"

namespace tandem {
namespace {

using PartToSend = std::pair<int, int>;  // from its source to its target

std::vector<PartToSend> messages_in_turns(const std::vector<int>& members) {
  std::vector<PartToSend> messages;
  for (size_t turn = 0; turn < members.size(); ++turn) {
    for (size_t target = 0; target < members.size(); ++target) {
      messages.emplace_back(members[(target + turn) % members.size()], members[target]);
    }
  }
  return messages;
}

// Of those that are left the one that can arrive first is next.
std::vector<PartToSend> by_arrival(const StrategyInputs& inputs, std::vector<PartToSend> left) {
  constexpr int64_t typical = 1 << 20;
  const auto seconds = [&](const PartToSend& message) {
    return transfer_seconds(inputs, message.first, message.second, typical);
  };
  const double any = left.empty() ? 0 : seconds(left.front());
  const bool are_alike = std::all_of(left.begin(), left.end(),
                                     [&](const PartToSend& one) { return seconds(one) == any; });
  if (are_alike) return left;
  std::vector<double> sends(size_t(inputs.devices), 0), receives(sends);  // until when
  const auto arrival = [&](const PartToSend& message) {
    return std::max(sends[size_t(message.first)], receives[size_t(message.second)]) +
           seconds(message);
  };
  std::vector<PartToSend> result;
  while (!left.empty()) {
    const auto next = std::min_element(
        left.begin(), left.end(),
        [&](const PartToSend& a, const PartToSend& b) { return arrival(a) < arrival(b); });
    sends[size_t(next->first)] = receives[size_t(next->second)] = arrival(*next);
    result.push_back(*next);
    left.erase(next);
  }
  return result;
}

}  // namespace

ArrivalOrder::ArrivalOrder(const StrategyInputs& inputs, std::vector<int> members)
    : members_(std::move(members)), sources_(members_.size()), targets_(members_.size()) {
  const std::vector<PartToSend> turns = messages_in_turns(members_);
  const auto own_end = turns.begin() + size();
  messages_.assign(turns.begin(), own_end);
  const std::vector<PartToSend> others = by_arrival(inputs, {own_end, turns.end()});
  messages_.insert(messages_.end(), others.begin(), others.end());
  for (const auto& [source, target] : messages_) {
    sources_[size_t(place_of(target))].push_back(source);
    targets_[size_t(place_of(source))].push_back(target);
  }
  for (std::vector<int>& own_last : targets_) {
    std::rotate(own_last.begin(), own_last.begin() + 1, own_last.end());
  }
}

int ArrivalOrder::place_of(int device) const {
  return static_cast<int>(std::find(members_.begin(), members_.end(), device) - members_.begin());
}

const std::vector<int>& ArrivalOrder::sources(int target) const {
  return sources_[size_t(place_of(target))];
}

const std::vector<int>& ArrivalOrder::targets(int source) const {
  return targets_[size_t(place_of(source))];
}

void emit_all_to_all(PlanBuilder& builder, const ArrivalOrder& order, const AllToAll& exchange) {
  for (const auto& [source, target] : order.messages()) {
    if (source != target) {
      builder.emit_transfer(exchange.what, exchange.stage, exchange.layer, source, target,
                            {exchange.part(source, target)}, When::every_micro_batch, full_duplex);
    }
    if (exchange.use) exchange.use(source, target);
  }
}

}  // namespace tandem
