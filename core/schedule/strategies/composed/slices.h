// Slices of the tensors and layers of a chain that the devices of a group divide: member j of g has
// the neurons share(neurons, g, j) of every tensor between the layers of the chain, for all rows of
// the group, here called its batch. This is the one place that names their buffers and describes
// the passes over them. A region holds rows of the batch, one after the other.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/strategies/composed/all_to_all.h"
#include "core/schedule/strategies/composed/rounds.h"

namespace tandem {

class Slices {
 public:
  // All outlive it. The members' rows follow each other.
  Slices(PlanBuilder& builder, const BackwardRounds& rounds, const ArrivalOrder& group);

  [[nodiscard]] PlanBuilder& builder() const { return builder_; }
  [[nodiscard]] const BackwardRounds& rounds() const { return rounds_; }
  [[nodiscard]] const ArrivalOrder& group() const { return group_; }
  [[nodiscard]] const std::vector<int>& members() const { return group_.members(); }
  [[nodiscard]] Interval batch() const { return batch_; }
  [[nodiscard]] Interval neurons(int tensor, int device) const;
  // The builder's shard of the device that has the whole batch.
  [[nodiscard]] int whole_batch(int device) const {
    return shards_[size_t(group_.place_of(device))];
  }
  // The name of the layer that makes the tensor; of tensors in one memory, the first.
  [[nodiscard]] const std::string& producer(int tensor) const;

  // The slice of `owner`, as it is on the device.
  [[nodiscard]] Region activation(int device, int tensor, int owner, Interval rows);
  // The gradient of the device's own slice.
  [[nodiscard]] Region gradient(int device, int tensor, Interval rows);
  // The part of `source` in the gradient of `owner`'s slice, on one of the two. A device's part for
  // itself lies where those of other devices arrive.
  [[nodiscard]] Region partial_gradient(int device, int tensor, int source, int owner,
                                        const ReduceScatter& scatter, Interval rows);
  // The device's part of the gradient of the chain's input, in whole rows; and the part of `source`
  // for the device's own rows, where it arrives.
  [[nodiscard]] Region input_gradient(int device, int tensor, const ReduceScatter& scatter,
                                      Interval rows);
  [[nodiscard]] Region received_input_gradient(int device, int tensor, int source,
                                               const ReduceScatter& scatter);
  // What a round of the layer computes of either before it is added to an earlier round's: `bytes`
  // of a buffer for as many elements as the largest has.
  [[nodiscard]] Region round_gradient(int device, int layer, int64_t largest, int64_t bytes);

  // The device's neurons of the layer, for these rows. Inputs and gradients are the caller's to
  // set.
  [[nodiscard]] PlanBinding describe(int device, int layer, Interval rows);
  // The same of an element-wise layer, with its input. The rows are one of the rounds'
  // row_blocks(), for which forward saves what backward needs.
  [[nodiscard]] PlanBinding describe_elementwise(int device, int layer, Interval rows);
  void emit_elementwise_forward(int layer);
  // The pass "forward fc1 @0 <suffix>".
  void emit_pass(LayerPass pass, PlanBinding use, const std::string& suffix,
                 bool accumulate = false);

 private:
  [[nodiscard]] bool has_row_blocks() const { return rounds_.row_blocks().size() > 1; }
  [[nodiscard]] Region slice(int device, int tensor, int owner, const std::string& what,
                             Interval all_rows, Interval rows);

  PlanBuilder& builder_;
  const Net& net_;
  const BackwardRounds& rounds_;
  const ArrivalOrder& group_;
  Interval batch_;
  std::vector<int> shards_;  // by place in the group
};

}  // namespace tandem
