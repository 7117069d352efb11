// A column-parallel linear layer on a group of devices: each has some of the layer's neurons, with
// their weights, and goes over all rows of the group.
//   forward   The parts of the input are all-gathered, and each device multiplies each part as soon
//             as it has arrived: its own first, then those of the following devices in turn. The
//             first layer's input comes from data-parallel layers, so its parts are rows. Those of
//             later layers are slices of neurons, whose partial products add up.
//   backward  In rounds (rounds.h). A round adds up the parts of the output gradient that it takes,
//             goes back through the element-wise layers down to this one, and computes the
//             gradients of the weights and of the whole input. The latter are reduce-scattered:
//             sent to the devices that have the parts of the input, which add them up.
#pragma once

#include <functional>
#include <string>

#include "core/schedule/strategies/composed/fc_chain.h"
#include "core/schedule/strategies/composed/slices.h"

namespace tandem {

class ColumnParallelLinear {
 public:
  // `layer` is a linear layer of the chain. Slices and chain outlive it.
  ColumnParallelLinear(Slices& slices, const FcChain& chain, int layer);

  // The input is the net's, so every device reads the whole batch.
  [[nodiscard]] bool reads_data() const;
  void emit_forward();
  void emit_backward();
  // For the last layer of the chain: the whole output, to each device for its own rows; the
  // gradients of these rows, back to the slices.
  void emit_gather_output();
  void emit_scatter_gradient();

 private:
  [[nodiscard]] const ArrivalOrder& group() const { return slices_.group(); }
  [[nodiscard]] const std::vector<int>& members() const { return slices_.members(); }
  [[nodiscard]] CopySegment input_rows(int source, int target);
  [[nodiscard]] PlanBinding product(int device, int owner, Interval rows);
  void emit_round(int device, const Round& round);
  [[nodiscard]] Region output_gradient(int device, const Round& round);
  void emit_input_gradient(const Round& round, PlanBinding use, const std::string& suffix);
  void emit_reduce_scatter(const ReduceScatter& scatter);
  void emit_reduce_rows(const ReduceScatter& scatter);
  enum class Direction { to_slices, to_rows };
  void rearrange_output(const std::string& label, Stage stage, int device, const Region& whole,
                        const std::function<Region(int owner)>& slice_of, Direction direction);

  Slices& slices_;
  PlanBuilder& builder_;
  const Net& net_;
  const FcChain& chain_;
  int index_;  // of the layer
  const Layer& layer_;
  int input_, output_;
  bool input_is_rows_;      // the first layer of the chain
  std::string input_name_;  // in labels
};

}  // namespace tandem
