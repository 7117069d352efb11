// What strategies are written with: emitters append tasks in a valid sequential order, each with
// its stream and the memory it reads and writes; buffers and bindings are made at first use. Waits
// are never written by hand: derive_dependencies() finds them. So an overlap is a choice of stream,
// order and regions, and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/shape.h"
#include "core/data/loader.h"
#include "core/model/net.h"
#include "core/schedule/plan.h"
#include "core/schedule/strategy.h"

namespace tandem {

// Bytes of the net's weight array, or of any array laid out as it is.
struct WeightRange {
  int64_t offset = 0, bytes = 0;
};
// The fewest ranges that hold these weight arrays and no others (padding between them included).
[[nodiscard]] std::vector<WeightRange> weight_ranges(const Net& net, std::vector<int> weights);
// The whole array.
[[nodiscard]] WeightRange all_weights(const Net& net);
[[nodiscard]] int64_t total_bytes(const std::vector<WeightRange>& ranges);

// Which streams a transfer occupies.
struct TransferStreams {
  StreamKind target = StreamKind::communication, source = StreamKind::communication;
};
constexpr TransferStreams full_duplex{StreamKind::communication, StreamKind::send};

// What a device updates of some weight arrays if not all of them, and where it keeps the solver's
// state of it (see StatePart).
struct UpdatePart {
  WeightRange range;
  int64_t state_begin = 0, state_stride = 0;
};

class PlanBuilder {
 public:
  enum class Purpose { training, testing };

  // Rows are divided as share() says. Error if the batch has fewer rows than there are devices.
  PlanBuilder(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose);

  [[nodiscard]] const Net& net() const { return *inputs_.net; }
  [[nodiscard]] const StrategyInputs& inputs() const { return inputs_; }
  [[nodiscard]] int devices() const { return inputs_.devices; }
  [[nodiscard]] Rows rows(int device) const { return share(net().batch, devices(), device); }
  // For notes and split_layer.
  [[nodiscard]] Plan& plan() { return plan_; }
  [[nodiscard]] Plan take() { return std::move(plan_); }

  // ---- Memory. Each makes what it names at first use.
  // --------------------------------------------

  // Returns the buffer of that name and device; its other properties are of the first call.
  int buffer(const Buffer& description);
  // The net's weights, their gradients, and what arrived on device 0 of another device's gradients.
  [[nodiscard]] Region weights(int device, const WeightRange& range);
  [[nodiscard]] Region gradients(int device, const WeightRange& range);
  [[nodiscard]] Region received_gradients(int sender, const WeightRange& range);
  // The solver's array number `index`, on the device that updates.
  [[nodiscard]] Region state(int device, int index, const WeightRange& range);
  [[nodiscard]] Region skip(int device);
  // Sums of squares (buffers::norms) of these weight arrays' gradients, and of the arrays.
  [[nodiscard]] std::vector<Region> norms(int device, const std::vector<int>& weights);
  // All scalars of the device's share; one of them; what arrived on device 0 of another device's.
  [[nodiscard]] Region metrics(int device);
  [[nodiscard]] Region metric(int device, int scalar);
  [[nodiscard]] Region received_metrics(int sender);
  // The tandem_step of the device's input.
  [[nodiscard]] Region step(int device);
  // A tensor's rows on the device. The data and the labels lie in the input, scalars in the
  // metrics; tensors made in place share one buffer, and so do their gradients.
  [[nodiscard]] Region tensor(int device, int index);
  [[nodiscard]] Region tensor_gradient(int device, int index);
  // What the layer's statistics pass (forward_statistics or backward_statistics) writes on the
  // device, and what arrived on device 0 of another's. No buffer where the layer has no such pass.
  [[nodiscard]] Region statistics(int device, int layer, LayerPass pass);
  [[nodiscard]] Region received_statistics(int sender, int layer, LayerPass pass);
  // The layer's use on the device, over the device's rows.
  int binding(int device, int layer);

  // ---- Tasks.
  // ------------------------------------------------------------------------------------

  // The device's rows of the batch, from the host, by its copy stream.
  void emit_input(int device);
  // The statistics pass, where the layer has one; before the passes that read what all devices
  // gave.
  void emit_statistics(int device, int layer, Stage stage, LayerPass pass);
  void emit_forward(int device, int layer);
  // The wanted halves: weights first, because their gradients travel. Nothing for a layer without.
  void emit_backward(int device, int layer, Stage stage);
  // By the first of the streams; the others are occupied as long.
  void emit_copy(const std::string& label, Stage stage, int layer,
                 const std::vector<StreamId>& streams, std::vector<CopySegment> segments,
                 When when = When::every_batch);
  // "<what> @1->@0": a copy between devices that occupies a stream of each; it runs on the
  // target's.
  void emit_transfer(const std::string& what, Stage stage, int layer, int source, int target,
                     std::vector<CopySegment> segments, When when,
                     const TransferStreams& streams = {});
  // target += sources, in this order.
  void emit_add(const std::string& label, Stage stage, StreamId stream, const Region& target,
                std::vector<Region> sources, When when = When::every_batch);
  // Device 0's statistics become those of the whole batch; of every other device they have arrived.
  void emit_merge(Stage stage, int layer, LayerPass pass,
                  StreamKind stream = StreamKind::communication);
  // What the solver's rule wants to know of these weight arrays before it changes them; nothing if
  // it wants nothing.
  void emit_norms(const std::string& label, Stage stage, int device,
                  const std::vector<int>& weights, StreamKind stream = StreamKind::communication);
  // The solver's rule over these weight arrays, or over a part of them. A part cannot be given to a
  // rule that needs norms.
  void emit_update(const std::string& label, Stage stage, int device,
                   const std::vector<int>& weights, StreamKind stream = StreamKind::communication,
                   const UpdatePart* part = nullptr);
  // Sets skip on the device if the scalar is not finite.
  void emit_check(const std::string& label, StreamId stream, int scalar);

 private:
  [[nodiscard]] const std::vector<Shape>& shapes(int device);
  [[nodiscard]] BatchLayout batch_layout(int64_t row_count) const;
  [[nodiscard]] Region input(int device);
  [[nodiscard]] Region constant(int device, int scalar);
  [[nodiscard]] Region output_gradient(int device, int layer, size_t output);
  void emit(Task task);
  void emit_pass(int device, int layer, Stage stage, const LayerWork& work);
  [[nodiscard]] Region state_of(int device, int index, const UpdatePart& part);
  [[nodiscard]] bool accumulates(int device, int layer);
  [[nodiscard]] BufferKind gradients_kind() const;
  [[nodiscard]] bool has_own_gradient(int layer, int weight) const;
  [[nodiscard]] Region weight_gradient(int device, int layer, int weight);
  void add_own_gradients(int device, int layer, Stage stage);

  StrategyInputs inputs_;
  Purpose purpose_;
  Plan plan_;
  std::map<std::pair<int, std::string>, int> buffers_;  // (device, name)
  std::map<std::pair<int, int>, int> bindings_;         // (device, layer)
  std::map<int64_t, std::vector<Shape>> shapes_;        // by row count
  std::vector<int> scalar_of_tensor_;                   // index in net().scalars; -1: none
  std::vector<int> last_users_;  // of each weight array: the layer that goes backward first
  std::set<std::pair<int, int>> written_gradients_;  // (device, weight array), in this step
};

}  // namespace tandem
