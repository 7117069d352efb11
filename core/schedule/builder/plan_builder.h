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
#include "core/schedule/builder/pending_activations.h"
#include "core/schedule/plan/plan.h"
#include "core/schedule/strategies/strategy.h"

namespace tandem {

// Bytes of the net's weight array, or of any array laid out as it is.
struct WeightRange {
  int64_t offset = 0, bytes = 0;
};
// The fewest ranges that hold these and nothing else but padding between them.
[[nodiscard]] std::vector<WeightRange> merged(std::vector<WeightRange> ranges);
[[nodiscard]] std::vector<WeightRange> weight_ranges(const Net& net,
                                                     const std::vector<int>& weights);
// The whole array.
[[nodiscard]] WeightRange all_weights(const Net& net);
[[nodiscard]] int64_t total_bytes(const std::vector<WeightRange>& ranges);

// Which streams a transfer occupies.
struct TransferStreams {
  StreamKind target = StreamKind::communication, source = StreamKind::communication;
};
constexpr TransferStreams full_duplex{StreamKind::communication, StreamKind::send};
// Small messages that must not queue behind large ones.
constexpr TransferStreams control_streams{StreamKind::control, StreamKind::control};

// Where the state of some floats lies for their update: that of the first of the solver's arrays,
// and the bytes to the next.
struct StatePlace {
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
              const std::vector<Rows>& rows);

  [[nodiscard]] const Net& net() const { return *inputs_.net; }
  [[nodiscard]] const StrategyInputs& inputs() const { return inputs_; }
  [[nodiscard]] int devices() const { return inputs_.devices; }
  // A place is some rows of the batch on a device, with memory of their own for every tensor.
  // Places 0 to devices() - 1 are the devices' own rows; a strategy whose devices work on several
  // ranges of rows adds others. `name` tells its buffers and tasks from those of other places.
  int add_place(int device, Rows rows, const std::string& name);
  [[nodiscard]] Rows rows(int place) const { return places_[size_t(place)].rows; }
  [[nodiscard]] int device_of(int place) const { return places_[size_t(place)].device; }
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
  [[nodiscard]] Region weights(int device, const WeightRange& range);
  [[nodiscard]] Region gradients(int device, const WeightRange& range);
  [[nodiscard]] Region received_gradients(int sender, const WeightRange& range, int root = 0);
  // The same for one that takes turns or is not of one sender: `name` tells it from others.
  [[nodiscard]] Region arriving_gradients(int device, const std::string& name,
                                          const WeightRange& range);
  [[nodiscard]] Region found_inf(int device);
  // Sums of squares (buffers::norms) of these weight arrays' gradients, and of the arrays.
  [[nodiscard]] std::vector<Region> norms(int device, const std::vector<int>& weights);
  // All scalars of the place's rows; one of them; what arrived on device `root` of another
  // device's.
  [[nodiscard]] Region metrics(int place);
  [[nodiscard]] Region metric(int place, int scalar);
  [[nodiscard]] Region received_metrics(int sender, int root = 0);
  // The tandem_step of the place's input.
  [[nodiscard]] Region step(int place);
  // A tensor's rows at the place. The data and the labels lie in the input, scalars in the
  // metrics; tensors made in place share one buffer, and so do their gradients.
  [[nodiscard]] Region tensor(int place, int index);
  [[nodiscard]] Region tensor_gradient(int place, int index);
  // Some of them: rows of the batch, all of which the place has.
  [[nodiscard]] Region tensor(int place, int index, Rows some);
  [[nodiscard]] Region tensor_gradient(int place, int index, Rows some);
  // What the layer's statistics pass (forward_statistics or backward_statistics) writes on the
  // device, and what arrived on device `root` of another's. No buffer where the layer has no such
  // pass.
  [[nodiscard]] Region statistics(int device, int layer, LayerPass pass);
  [[nodiscard]] Region received_statistics(int sender, int layer, LayerPass pass, int root = 0);
  // The layer's use at the place, over the place's rows.
  int binding(int place, int layer);
  // What binding() would make, to be changed and added by a strategy that needs another use.
  [[nodiscard]] PlanBinding describe(int place, int layer);
  int add_binding(PlanBinding use);
  // Makes it a use of output channels [begin, end) alone, of which it has weights and gradients;
  // its outputs stay whole, and no activation is done along. The layer's type can be sliced.
  void slice_outputs(PlanBinding& use, int64_t begin, int64_t end) const;
  // Makes a use that has all of the place's rows one of some of them. The layer works on single
  // samples and keeps nothing between its passes.
  void slice_rows(PlanBinding& use, int place, Rows some) const;
  // Those channels' parts of the layer's weight arrays that are trained.
  [[nodiscard]] std::vector<WeightPart> parts_of(int layer, int64_t begin, int64_t end) const;

  // ---- Tasks.
  // ------------------------------------------------------------------------------------

  // The place's rows of the batch, from the host, by its device's copy stream, which also makes
  // floats of pixels that come as bytes. Without data: only the step and the labels.
  void emit_input(int place, bool with_data = true);
  // The statistics pass, where the layer has one; before the passes that read what all devices
  // gave.
  void emit_statistics(int place, int layer, Stage stage, LayerPass pass);
  // Nothing where the kernel of the layer before it has done it along.
  void emit_forward(int place, int layer);
  // The wanted halves: weights first, because their gradients travel. Nothing for a layer without.
  void emit_backward(int place, int layer, Stage stage);
  // The half of it that makes the weights' gradients.
  void emit_backward_weights(int place, int layer, Stage stage);
  // "backward_data fc1 @0"
  [[nodiscard]] std::string label(LayerPass pass, int layer, int place) const;
  // One pass of a binding, by its device's compute stream.
  void emit_pass(const std::string& label, Stage stage, const LayerWork& work);
  // By the first of the streams; the others are occupied as long.
  void emit_copy(const std::string& label, Stage stage, int layer,
                 const std::vector<StreamId>& streams, std::vector<CopySegment> segments,
                 When when = When::every_batch);
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
                std::vector<Region> sources, When when = When::every_batch);
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
                   const std::vector<WeightPart>& parts,
                   StreamKind stream = StreamKind::communication,
                   const StatePlace* state = nullptr);
  // Room for the state of a range that the device updates, noted in the plan.
  [[nodiscard]] StatePlace keep_state(int device, const WeightRange& range,
                                      bool is_extended = false);
  [[nodiscard]] WeightRange range_of(const WeightPart& part) const;
  // The fewest ranges that hold these parts, padding between them included.
  [[nodiscard]] std::vector<WeightRange> ranges_of(const std::vector<WeightPart>& parts) const;
  // What of these arrays lies in the range; the whole arrays.
  [[nodiscard]] std::vector<WeightPart> parts_in(const std::vector<int>& weights,
                                                 const WeightRange& range) const;
  // Sets found_inf on the device if the scalar is not finite.
  void emit_check(const std::string& label, StreamId stream, int scalar);

 private:
  struct Place {
    int device = 0;
    Rows rows;
    std::string name;
  };

  void find_scalars();
  void find_last_users();
  // The place's memory of that name on its device.
  [[nodiscard]] Buffer at(int place, const std::string& name, int64_t bytes, int slots = 1) const;
  [[nodiscard]] const std::vector<Shape>& shapes(int place);
  [[nodiscard]] int64_t tensor_bytes(int place, int index);
  // As the net reads it, and as it comes from the host.
  [[nodiscard]] BatchLayout batch_layout(int64_t row_count) const;
  [[nodiscard]] BatchLayout global_layout() const;
  void emit_conversion(int place, const Region& pixels, const Region& target);
  [[nodiscard]] std::string input_label(const char* what, int place) const;
  [[nodiscard]] Region input(int place);
  [[nodiscard]] Region constant(int device, int scalar);
  [[nodiscard]] Region output_gradient(int place, int layer, size_t output);
  void emit(Task task);
  [[nodiscard]] bool accumulates(int device, int layer);
  [[nodiscard]] BufferKind gradients_kind() const;
  // A buffer laid out as the net's weights, of which take() leaves what is touched.
  [[nodiscard]] Region weight_array(const std::string& name, int device, BufferKind kind,
                                    const WeightRange& range);
  [[nodiscard]] bool has_own_gradient(int layer, int weight) const;
  [[nodiscard]] Region weight_gradient(int device, int layer, int weight);
  void add_own_gradients(int place, int layer, Stage stage);

  StrategyInputs inputs_;
  Purpose purpose_;
  Plan plan_;
  PendingActivations pending_;
  std::vector<Place> places_;
  std::map<std::pair<int, std::string>, int> buffers_;  // (device, name)
  std::set<int> weight_arrays_;                         // buffers
  std::map<std::pair<int, int>, int> bindings_;         // (place, layer)
  std::map<int64_t, std::vector<Shape>> shapes_;        // by row count
  std::vector<int> scalar_of_tensor_;                   // index in net().scalars; -1: none
  std::vector<int> last_users_;  // of each weight array: the layer that goes backward first
  std::set<std::pair<int, int>> written_gradients_;  // (device, weight array), in this step
};

}  // namespace tandem
