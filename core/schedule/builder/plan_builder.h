// The emitters that strategies are written with. They append tasks in a valid sequential order,
// each with its stream and the memory that it reads and writes. derive_dependencies() derives all
// waits from these declarations, so overlap follows from streams, order and regions alone.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/schedule/builder/pending_activations.h"
#include "core/schedule/builder/plan_regions.h"

namespace tandem {

// Which streams a transfer occupies.
struct TransferStreams {
  StreamKind target = StreamKind::communication, source = StreamKind::communication;
};
constexpr TransferStreams full_duplex{StreamKind::communication, StreamKind::send};
// Small messages that must not queue behind large ones.
constexpr TransferStreams control_streams{StreamKind::control, StreamKind::control};

class PlanBuilder : public PlanRegions {
 public:
  using PlanRegions::PlanRegions;

  // The finished plan. Arrays laid out as the net's weights are packed to what its tasks touch.
  [[nodiscard]] Plan take();
  // Begins the tasks again, for a search that only simulates the plans that it tries. Buffers and
  // bindings stay, and the passes of layers, which make most of a plan, are used again.
  void restart();

  // Copies the shard's rows of the batch from the host on its device's copy stream, and converts
  // pixels that come as bytes to floats. Without data: only the step and the labels.
  void emit_input(int shard, bool with_data = true);
  // The statistics pass, where the layer has one. It comes before the passes that read the
  // statistics of all devices.
  void emit_statistics(int shard, int layer, Stage stage, LayerPass pass);
  // Nothing for an activation that is fused into the layer before and was applied there.
  void emit_forward(int shard, int layer);
  // The backward passes that are wanted, if it has any: weights first, because their gradients
  // travel.
  void emit_backward(int shard, int layer, Stage stage);
  // The one that makes its inputs' gradients, of some of the shard's rows. False: there is none.
  bool emit_backward_data(int shard, int layer, Stage stage, Interval some);
  // Only the pass that makes the weights' gradients.
  void emit_backward_weights(int shard, int layer, Stage stage);
  // "backward_data fc1 @0"
  [[nodiscard]] std::string label(LayerPass pass, int layer, int shard) const;
  // One pass of a binding, by its device's compute stream.
  void emit_pass(const std::string& label, Stage stage, const LayerWork& work);
  // The first stream copies; the others are occupied meanwhile.
  void emit_copy(const std::string& label, Stage stage, int layer,
                 const std::vector<StreamId>& streams, std::vector<CopySegment> segments,
                 When when = When::every_micro_batch);
  // "<what> @1->@0": a copy between devices that occupies a stream of each; it runs on the
  // target's.
  void emit_transfer(const std::string& what, Stage stage, int layer, int source, int target,
                     std::vector<CopySegment> segments, When when,
                     const TransferStreams& streams = {});
  // A copy of many small segments within the device, by its copy stream. `reads` and `writes` are
  // what its segments touch together.
  void emit_rearrangement(const std::string& label, Stage stage, int layer, int device,
                          std::vector<CopySegment> segments, std::vector<Region> reads,
                          std::vector<Region> writes);
  // target += sources, in this order.
  void emit_add(const std::string& label, Stage stage, StreamId stream, const Region& target,
                std::vector<Region> sources, When when = When::every_micro_batch);
  // The first member's statistics become those of all members together. The others' have arrived
  // (received_statistics).
  void emit_merge(Stage stage, int layer, LayerPass pass, const std::vector<int>& members,
                  StreamKind stream = StreamKind::communication);
  // The norms of these weight arrays and of their gradients, if the solver's rule reads norms.
  void emit_norms(const std::string& label, Stage stage, int device,
                  const std::vector<int>& weights, StreamKind stream = StreamKind::communication);
  // The solver's rule over these weight arrays, whose state is on the device.
  void emit_update(const std::string& label, Stage stage, int device,
                   const std::vector<int>& weights, StreamKind stream = StreamKind::communication);
  // The same over slices of arrays. `state` says where their state lies during the update; the
  // slices are then one range. nullptr: the device keeps their state.
  void emit_update(const std::string& label, Stage stage, int device,
                   const std::vector<WeightSlice>& slices,
                   StreamKind stream = StreamKind::communication,
                   const StateRegion* state = nullptr);
  // Sets found_inf on the device if the scalar is not finite.
  void emit_check(const std::string& label, StreamId stream, int scalar);

 private:
  void emit(Task task);
  // Whether a pass of its own makes the layer's gradients: not where it has none, where its inputs'
  // gradients are views of its output's, and for an activation whose gradient another layer that
  // was emitted applies.
  [[nodiscard]] bool has_backward_pass(int shard, int layer) const;
  // A pass of the shard's own binding of the layer.
  void emit_own_pass(int shard, int layer, Stage stage, LayerPass pass, bool accumulate = false);
  void emit_conversion(int shard, const Region& pixels, const Region& target);
  [[nodiscard]] std::string input_label(const char* what, int shard) const;
  [[nodiscard]] bool accumulates(int device, int layer);
  void add_own_gradients(int shard, int layer, Stage stage);

  PendingActivations pending_;
  std::set<std::pair<int, int>> written_gradients_;  // (device, weight array), so far
  // (shard, activation): the layer before or after it applies its gradient
  std::set<std::pair<int, int>> applied_ahead_;
  std::vector<Task> kept_passes_;  // by binding and pass, before a restart; no stream: none
};

}  // namespace tandem
