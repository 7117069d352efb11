// The exchange under all-gathers and reduce-scatters of parts that the devices of a group use one
// by one: each receives a part from each other device. The order of the parts is fixed before the
// run, so that results have the same bits every time: that of their predicted arrival. A device
// sends and receives one part at a time; those that can arrive first go first. A device's own part
// does not travel and comes before all others.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/strategies/common/stages.h"

namespace tandem {

class ArrivalOrder {
 public:
  // Where all links are alike, in turn k member d receives from member d + k (mod N).
  ArrivalOrder(const StrategyInputs& inputs, std::vector<int> members);

  [[nodiscard]] const std::vector<int>& members() const { return members_; }
  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  // Of a member; in the order in which the neurons are divided.
  [[nodiscard]] int place_of(int device) const;
  // (source, target), the members' own parts first.
  [[nodiscard]] const std::vector<std::pair<int, int>>& messages() const { return messages_; }
  // In the order in which its parts arrive, itself first.
  [[nodiscard]] const std::vector<int>& sources(int target) const;
  // In the order in which it sends, itself last.
  [[nodiscard]] const std::vector<int>& targets(int source) const;

 private:
  std::vector<int> members_;
  std::vector<std::pair<int, int>> messages_;
  std::vector<std::vector<int>> sources_, targets_;  // by place
};

struct AllToAll {
  std::string what;  // in the labels of its tasks: "send fc1"
  Stage stage = stages::send_activations;
  int layer = -1;
  // Where the part of `source` for `target` lies on both.
  std::function<CopySegment(int source, int target)> part{};
  // Appends the tasks of `target` that need this part; `source` may be `target`. May be empty.
  std::function<void(int source, int target)> use{};
};

void emit_all_to_all(PlanBuilder& builder, const ArrivalOrder& order, const AllToAll& exchange);

}  // namespace tandem
