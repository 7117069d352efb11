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

#include "core/base/interval.h"
#include "core/base/shape.h"
#include "core/data/loader.h"
#include "core/model/net.h"
#include "core/schedule/builder/pending_activations.h"
#include "core/schedule/builder/strategy_inputs.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// Intervals of weights are bytes of the net's weight array, or of any array laid out as it is.

// The fewest intervals that hold these and nothing else but padding between them.
[[nodiscard]] std::vector<Interval> merged(std::vector<Interval> bytes);
[[nodiscard]] std::vector<Interval> weight_ranges(const Net& net, const std::vector<int>& weights);
// The whole array.
[[nodiscard]] Interval all_weights(const Net& net);
[[nodiscard]] int64_t total_bytes(const std::vector<Interval>& ranges);

// Which streams a transfer occupies.
struct TransferStreams {
  StreamKind target = StreamKind::communication, source = StreamKind::communication;
};
constexpr TransferStreams full_duplex{StreamKind::communication, StreamKind::send};
// Small messages that must not queue behind large ones.
constexpr TransferStreams control_streams{StreamKind::control, StreamKind::control};

// Where the state of some weights lies for their update: in the first of the solver's arrays, and
// the bytes to the next one.
struct StateRegion {
  Region first;
  int64_t stride = 0;
};

class PlanBuilder {
 public:
  enum class Purpose { training, testing };

  // Rows are divided as share() says. Error if the batch has fewer rows than there are devices.
  PlanBuilder(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose);
  // Device d works on rows[d] of the batch, of which there is at least one.
  PlanBuilder(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose,
              const std::vector<Interval>& rows);

  [[nodiscard]] const Net& net() const { return *inputs_.net; }
  [[nodiscard]] const StrategyInputs& inputs() const { return inputs_; }
  [[nodiscard]] int devices() const { return inputs_.devices; }
  // A shard is some rows of the batch on a device, with memory of its own for every tensor. Shards
  // 0 to devices() - 1 are the devices' own rows; a strategy whose devices work on several
  // intervals of rows adds others. `name` distinguishes its buffers and tasks from those of other
  // shards.
  int add_shard(int device, Interval rows, const std::string& name);
  [[nodiscard]] Interval rows(int shard) const { return shards_[size_t(shard)].rows; }
  [[nodiscard]] int device_of(int shard) const { return shards_[size_t(shard)].device; }
  // For notes and split_layer.
  [[nodiscard]] Plan& plan() { return plan_; }
  // The finished plan. Arrays laid out as the net's weights keep only what its tasks touch.
  [[nodiscard]] Plan take();

  // ---- Memory. Each makes what it names at first use.
  // --------------------------------------------

  // Returns the buffer of that name and device; its other properties are of the first call.
  int buffer(const Buffer& description);
  // The net's weights, their gradients, and what arrived on device `root` of another device's
  // gradients.
  [[nodiscard]] Region weights(int device, Interval range);
  [[nodiscard]] Region gradients(int device, Interval range);
  [[nodiscard]] Region received_gradients(int sender, Interval range, int root = 0);
  // The same for one that takes turns or is not of one sender: `name` tells it from others.
  [[nodiscard]] Region arriving_gradients(int device, const std::string& name, Interval range);
  [[nodiscard]] Region found_inf(int device);
  // Sums of squares (buffers::norms) of these weight arrays' gradients, and of the arrays.
  [[nodiscard]] std::vector<Region> norms(int device, const std::vector<int>& weights);
  // All scalars of the shard's rows; one of them; what arrived on device `root` of another
  // device's.
  [[nodiscard]] Region metrics(int shard);
  [[nodiscard]] Region metric(int shard, int scalar);
  [[nodiscard]] Region received_metrics(int sender, int root = 0);
  // The tandem_step of the shard's input.
  [[nodiscard]] Region step(int shard);
  // A tensor's rows at the shard. The data and the labels lie in the input, scalars in the
  // metrics; tensors made in place share one buffer, and so do their gradients.
  [[nodiscard]] Region tensor(int shard, int index);
  [[nodiscard]] Region tensor_gradient(int shard, int index);
  // Some of them: rows of the batch, all of which the shard has.
  [[nodiscard]] Region tensor(int shard, int index, Interval some);
  [[nodiscard]] Region tensor_gradient(int shard, int index, Interval some);
  // What the layer's statistics pass (forward_statistics or backward_statistics) writes on the
  // device, and what arrived on device `root` of another's. No buffer where the layer has no such
  // pass.
  [[nodiscard]] Region statistics(int device, int layer, LayerPass pass);
  [[nodiscard]] Region received_statistics(int sender, int layer, LayerPass pass, int root = 0);
  // The layer's use at the shard, over the shard's rows.
  int binding(int shard, int layer);
  // What binding() would make, to be changed and added by a strategy that needs another use.
  [[nodiscard]] PlanBinding describe(int shard, int layer);
  int add_binding(PlanBinding use);
  // Makes it a use of these output channels alone, of which it has weights and gradients. Its
  // outputs stay whole, and no activation is fused. The layer's type can be sliced.
  void slice_outputs(PlanBinding& use, Interval channels) const;
  // Makes a use that has all of the shard's rows one of some of them. The layer works on single
  // samples and keeps nothing between its passes.
  void slice_rows(PlanBinding& use, int shard, Interval some) const;
  // Those channels' parts of the layer's weight arrays that are trained.
  [[nodiscard]] std::vector<WeightSlice> slices_of(int layer, Interval channels) const;

  // ---- Tasks.
  // ------------------------------------------------------------------------------------

  // The shard's rows of the batch, from the host, by its device's copy stream, which also makes
  // floats of pixels that come as bytes. Without data: only the step and the labels.
  void emit_input(int shard, bool with_data = true);
  // The statistics pass, where the layer has one; before the passes that read what all devices
  // gave.
  void emit_statistics(int shard, int layer, Stage stage, LayerPass pass);
  // Nothing where the kernel of the layer before it has done it along.
  void emit_forward(int shard, int layer);
  // The wanted halves: weights first, because their gradients travel. Nothing for a layer without.
  void emit_backward(int shard, int layer, Stage stage);
  // The half of it that makes the weights' gradients.
  void emit_backward_weights(int shard, int layer, Stage stage);
  // "backward_data fc1 @0"
  [[nodiscard]] std::string label(LayerPass pass, int layer, int shard) const;
  // One pass of a binding, by its device's compute stream.
  void emit_pass(const std::string& label, Stage stage, const LayerWork& work);
  // By the first of the streams; the others are occupied as long.
  void emit_copy(const std::string& label, Stage stage, int layer,
                 const std::vector<StreamId>& streams, std::vector<CopySegment> segments,
                 When when = When::every_micro_batch);
  // "<what> @1->@0": a copy between devices that occupies a stream of each; it runs on the
  // target's.
  void emit_transfer(const std::string& what, Stage stage, int layer, int source, int target,
                     std::vector<CopySegment> segments, When when,
                     const TransferStreams& streams = {});
  // A copy within the device of many small segments, which reads and writes these regions, by its
  // copy stream.
  void emit_rearrangement(const std::string& label, Stage stage, int layer, int device,
                          std::vector<CopySegment> segments, std::vector<Region> reads,
                          std::vector<Region> writes);
  // target += sources, in this order.
  void emit_add(const std::string& label, Stage stage, StreamId stream, const Region& target,
                std::vector<Region> sources, When when = When::every_micro_batch);
  // The first member's statistics become those of all members together; those of the others have
  // arrived.
  void emit_merge(Stage stage, int layer, LayerPass pass, const std::vector<int>& members,
                  StreamKind stream = StreamKind::communication);
  // What the solver's rule wants to know of these weight arrays before it changes them; nothing if
  // it wants nothing.
  void emit_norms(const std::string& label, Stage stage, int device,
                  const std::vector<int>& weights, StreamKind stream = StreamKind::communication);
  // The solver's rule over these weight arrays, whose state is on the device.
  void emit_update(const std::string& label, Stage stage, int device,
                   const std::vector<int>& weights, StreamKind stream = StreamKind::communication);
  // Over parts of arrays. `state` says where that of the parts, which then are one range, lies for
  // now; without it the device keeps it.
  void emit_update(const std::string& label, Stage stage, int device,
                   const std::vector<WeightSlice>& slices,
                   StreamKind stream = StreamKind::communication,
                   const StateRegion* state = nullptr);
  // Room for the state of a range that the device updates, noted in the plan.
  [[nodiscard]] StateRegion keep_state(int device, Interval range, bool is_extended = false);
  [[nodiscard]] Interval range_of(const WeightSlice& slice) const;
  // The fewest ranges that hold these parts, padding between them included.
  [[nodiscard]] std::vector<Interval> ranges_of(const std::vector<WeightSlice>& slices) const;
  // What of these arrays lies in the range; the whole arrays.
  [[nodiscard]] std::vector<WeightSlice> slices_in(const std::vector<int>& weights,
                                                   Interval range) const;
  // Sets found_inf on the device if the scalar is not finite.
  void emit_check(const std::string& label, StreamId stream, int scalar);

 private:
  struct Shard {
    int device = 0;
    Interval rows;
    std::string name;
  };

  void find_scalars();
  void find_last_users();
  // The shard's memory of that name on its device.
  [[nodiscard]] Buffer at(int shard, const std::string& name, int64_t bytes, int slots = 1) const;
  [[nodiscard]] const std::vector<Shape>& shapes(int shard);
  [[nodiscard]] int64_t tensor_bytes(int shard, int index);
  // As the net reads it, and as it comes from the host.
  [[nodiscard]] BatchLayout batch_layout(int64_t row_count) const;
  [[nodiscard]] BatchLayout global_layout() const;
  void emit_conversion(int shard, const Region& pixels, const Region& target);
  [[nodiscard]] std::string input_label(const char* what, int shard) const;
  [[nodiscard]] Region input(int shard);
  [[nodiscard]] Region constant(int device, int scalar);
  [[nodiscard]] Region output_gradient(int shard, int layer, size_t output);
  void emit(Task task);
  [[nodiscard]] bool accumulates(int device, int layer);
  [[nodiscard]] BufferKind gradients_kind() const;
  // A buffer laid out as the net's weights, of which take() leaves what is touched.
  [[nodiscard]] Region weight_array(const std::string& name, int device, BufferKind kind,
                                    Interval range);
  [[nodiscard]] bool has_own_gradient(int layer, int weight) const;
  [[nodiscard]] Region weight_gradient(int device, int layer, int weight);
  void add_own_gradients(int shard, int layer, Stage stage);

  StrategyInputs inputs_;
  Purpose purpose_;
  Plan plan_;
  PendingActivations pending_;
  std::vector<Shard> shards_;
  std::map<std::pair<int, std::string>, int> buffers_;  // (device, name)
  std::set<int> weight_arrays_;                         // buffers
  std::map<std::pair<int, int>, int> bindings_;         // (shard, layer)
  std::map<int64_t, std::vector<Shape>> shapes_;        // by row count
  std::vector<int> scalar_of_tensor_;                   // index in net().scalars; -1: none
  std::vector<int> last_users_;  // of each weight array: the layer that goes backward first
  std::set<std::pair<int, int>> written_gradients_;  // (device, weight array), in this step
};

}  // namespace tandem
