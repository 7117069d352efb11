// Sums of gradients among some of the devices, as copies and additions around a ring in one fixed
// order, so that every member ends with the same bits. A range is cut into a part for each member:
// a part travels around the ring and every device adds its own, until it reaches its owner; then
// the parts travel around once more. 2 (N - 1) / N x bytes pass through every link, all at once. A
// device receives on its communication stream, sends on its send stream and adds on its update
// stream; a part is at least two pieces that follow each other, so that one travels while the
// other is added; between more of them other copies can pass.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"

namespace tandem {

class RingGroup {
 public:
  // The labels and stages of a range's tasks.
  struct Label {
    std::string name;  // "conv1 gradients"
    int layer = -1;
    Stage stage, adding{};  // of copies, and of the additions of a reduction
  };

  // The members in the order of the ring. `builder` outlives it. `pieces`: at most, of a part; they
  // change no sum.
  RingGroup(PlanBuilder& builder, std::vector<int> members, int pieces = 2);

  // Then every member has the sum of its own part of the range.
  void emit_reduce_scatter(const Label& label, Interval range);
  // Every member's part of the array to all others.
  void emit_all_gather(const Label& label, Interval range, PlanRegions::WeightsOrGradients array);
  // The gradients in these ranges become, on every member, their sum. Nothing for a group of one.
  void emit_all_reduce(const Label& label, const std::vector<Interval>& ranges);

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] int member(int number) const { return members_[size_t(number % size())]; }
  // Of each part of the range: 1 where latency counts more than bytes.
  [[nodiscard]] int pieces(Interval range) const;
  // Of member number `part`.
  [[nodiscard]] Interval slice(Interval range, int part, int piece) const;
  [[nodiscard]] static std::string part_name(int part, int piece);

 private:
  void emit_ring_step(const Label& label, Interval range, int part, int piece, int from);

  PlanBuilder& builder_;
  std::vector<int> members_;
  int pieces_;
};

}  // namespace tandem
