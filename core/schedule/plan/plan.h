// A plan: what every device's streams do for one micro-batch of training (or testing), as plain
// data. Tasks are listed in one valid sequential order. On each stream they run in that order;
// `after` says what else a task waits for. A plan can be printed, drawn, simulated, checked for
// races and run by the executor on any backend.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/numbers/interval.h"
#include "core/base/numbers/shape.h"
#include "core/data/pixels.h"
#include "include/tandem/strategies.h"

namespace tandem {

// A transfer occupies the communication streams of both devices. A full-duplex transfer occupies
// the target's communication stream and the source's send stream, so that a device can send and
// receive at once. What takes no link (adding, updating) may have a stream of its own, and so may
// small messages that must not queue behind large ones.
enum class StreamKind { compute, communication, copy, send, update, control };
constexpr int stream_kinds = 6;
[[nodiscard]] const char* to_string(StreamKind kind);

struct StreamId {
  int device = 0;
  StreamKind kind = StreamKind::compute;
  friend bool operator==(const StreamId&, const StreamId&) = default;
};

// What a task is for, as users see it: its name in tables and timelines, its color in pictures and
// graphs, and its place among the others there. Strategies name their own; these are common to all.
struct Stage {
  int place = 0;
  std::string_view name, color;  // of literals, or of texts that live as long as the program
  friend auto operator<=>(const Stage&, const Stage&) = default;
  static const Stage input, forward, report;
  static const Stage store_state;  // to extended memory; and what a layer keeps (recompute.h)
};
inline constexpr Stage Stage::input{0, "input", "#d9d9d9"};
inline constexpr Stage Stage::forward{2, "forward", "#80b1d3"};
inline constexpr Stage Stage::report{13, "report", "#ffffb3"};
inline constexpr Stage Stage::store_state{20, "store_state", "#d2a56d"};
[[nodiscard]] inline std::string to_string(const Stage& stage) {
  return std::string(stage.name);
}

enum class BufferKind { persistent, transient, external };

// Memory of one device (device -1: of the host). A persistent buffer keeps its content between
// micro-batches and is shared by name with other plans. The caller gives the address of an
// external one for every micro-batch. With slots = 2, micro-batch m uses slot m % 2. `bytes` is of
// one slot; sizes that only kernels know (saved, scratch) are filled in later.
struct Buffer {
  std::string name;  // "weights", "conv1 output"; unique within its device
  int device = 0;
  BufferKind kind = BufferKind::transient;
  int64_t bytes = 0;
  int slots = 1;
  std::vector<float> initial;  // persistent constants: what it starts with; empty: zeros
  // Persistent, in the second, larger and slower memory of its device: a mapped file on the cpu,
  // pinned host memory elsewhere. Only copies touch it, as host memory.
  bool is_extended = false;
  // Persistent, of a device whose memory is the host's: "numa:1", that of a NUMA node; a folder, a
  // file in it that is mapped; "": where its device's memory is, and extended memory in TMPDIR.
  std::string memory{};
};

constexpr int64_t whole_buffer = -1;

struct Region {
  int buffer = -1;
  int64_t offset = 0;
  int64_t bytes = whole_buffer;
};

// One use of a layer: on a device, over some rows of the global batch.
struct PlanBinding {
  int layer = -1;
  int device = 0;
  Interval rows;
  Interval slice{0, -1};        // output channels; end -1: all
  bool whole_outputs = false;   // the outputs of a slice are the whole layer's
  Interval input_slice{0, -1};  // elements of a row of input 0; end -1: all
  bool adds_to_output = false;  // of a slice of the inputs that is not the first
  // The activation (TANDEM_ACTIVATION_) that forward applies to output 0, after it added a fused
  // sum: that of Layer::activation, or none.
  int32_t activation = TANDEM_ACTIVATION_NONE;
  // The one of the layer before, whose backward pass this one computes, too.
  int32_t activation_before = TANDEM_ACTIVATION_NONE;
  // Buffers whose bytes the kernel's report fills in. Scratch memory keeps nothing after a pass.
  int saved = -1, scratch = -1, backward_scratch = -1;
  // Where each of the layer's tensors lives on this device, in the order of the layer's lists.
  // buffer -1: none.
  std::vector<Region> inputs, outputs, weights, input_gradients, output_gradients, weight_gradients;
  Region addend;  // what forward adds to output 0: the other input of a sum that is fused into it
  Region step, normaliser;
  Region row_labels;                               // of a loss or metric: which rows hold samples
  Region forward_statistics, backward_statistics;  // first the device's own, then the batch's
};

enum class LayerPass {
  forward,
  backward_data,
  backward_weights,
  backward,
  forward_statistics,
  backward_statistics
};
constexpr int layer_passes = static_cast<int>(LayerPass::backward_statistics) + 1;
[[nodiscard]] const char* to_string(LayerPass pass);

struct LayerWork {
  int binding = -1;
  LayerPass pass = LayerPass::forward;
  bool accumulate = false;
  bool repeats = false;  // a forward pass once more, into the same memory (recompute.h)
};
struct CopySegment {
  Region source, target;
};
struct CopyWork {
  std::vector<CopySegment> segments;
};
struct AddWork {  // target += sources, in this order, as floats
  Region target;
  std::vector<Region> sources;
};
struct MergeWork {   // target = the statistics of target and sources together, in this order
  int binding = -1;  // its kernel merges
  LayerPass pass = LayerPass::forward_statistics;  // or backward_statistics
  Region target;
  std::vector<Region> sources;
};
struct ArrayNorms {  // of a weight array of the net
  int weight = -1;
  Region values, gradient;
};
struct NormWork {  // sums of squares of weight arrays and of their gradients
  std::vector<ArrayNorms> arrays;
  Region norms;  // as buffers::norms says
};
struct ArrayUpdate {  // elements of one weight array, wherever the plan keeps them
  int weight = -1;    // of the net: whose rate, decay and norms
  Region weights, gradient;
  Region state;              // in the first of the solver's arrays
  int64_t state_stride = 0;  // bytes from it to the same elements of the next array
};
struct UpdateWork {  // the solver's rule
  std::vector<ArrayUpdate> arrays;
  Region step, found_inf;
  Region norms{};  // buffer -1: the rule needs none
};
struct CheckWork {  // found_inf = 1 if a value is not finite
  Region values, found_inf;
};
struct ConvertWork {  // target = the pixels, which are bytes, as floats
  Shape shape;        // of all images
  Region pixels, target;
  PixelScale scale;
};
// Between devices of two ranks. The regions' bytes, one after the other, are the message. A channel
// carries messages between a pair of streams, in the order of the plan on both sides.
struct RankMessage {
  int peer = -1;  // the other rank
  int channel = -1;
  std::vector<Region> regions;
  Region staging{};  // memory through which the bytes go; buffer -1: none
  // Between devices, by a link of theirs. Then staging is of the stream's device, else the host's.
  bool by_link = false;
};
struct SendWork : RankMessage {};
struct ReceiveWork : RankMessage {};
using Work = std::variant<LayerWork, CopyWork, AddWork, MergeWork, NormWork, UpdateWork, CheckWork,
                          ConvertWork, SendWork, ReceiveWork>;

// A step is one update; it takes the gradients of micro_batches_per_step micro-batches (iter_size).
// The executor runs the whole plan for every micro-batch. `When` says in which of them a task does
// its work; in the others it is issued without work. micro_batch_0: in that one alone, with which
// an evaluation begins.
enum class When { every_micro_batch, first_micro_batch, last_micro_batch, micro_batch_0 };

struct Dependency {
  int task = -1;
  int micro_batches_back = 0;  // 0: of this micro-batch; 1: of the one before; ...
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Task {
  std::string label;  // "forward conv1 @0", unique in the plan
  Stage stage = Stage::forward;
  int layer = -1;  // of the net; -1: none
  // The first stream does the work. The others are occupied from when all have arrived at the task
  // until it is done.
  std::vector<StreamId> streams;
  std::vector<Region> reads{}, writes{};
  std::vector<Dependency> after{};
  Work work{};
  When when = When::every_micro_batch;
};

// Where the solver's state of some bytes of the weight array lies in a device's state buffer. The
// state in the first of the solver's arrays is at `offset`; that in each further array is `stride`
// bytes after the one in the array before.
struct StatePlacement {
  int device = 0;
  Interval weights;  // bytes of the weight array
  int64_t offset = 0, stride = 0;
  bool is_extended = false;  // in the device's extended state buffer
};

constexpr const char* testing_strategy = "testing";  // of a plan that tests

struct Plan {
  std::string strategy;
  std::string net;
  int devices = 1;
  int64_t batch = 0;
  int micro_batches_per_step = 1;  // that the weights' gradients are added up over
  std::vector<Buffer> buffers;
  std::vector<PlanBinding> bindings;
  std::vector<Task> tasks;
  // Which device has the newest values of each part of the weight array. Empty: device 0 has all.
  std::vector<Placement> weights_at;
  // Several entries may cover the same bytes, with the same values.
  std::vector<StatePlacement> state_at;
  StrategyOptions options;         // the strategy's: those given, and what it chose
  std::string split_layer;         // first layer of the FC part; "": no such split
  std::vector<std::string> notes;  // what the strategy decided, for the user
  std::string recomputation;       // what runs again in a step, for the user; "": not asked for

  [[nodiscard]] const Buffer& buffer(int index) const { return buffers[size_t(index)]; }
  [[nodiscard]] Buffer& buffer(int index) { return buffers[size_t(index)]; }
  [[nodiscard]] const PlanBinding& binding(int index) const { return bindings[size_t(index)]; }
  [[nodiscard]] const Task& task(int index) const { return tasks[size_t(index)]; }
  [[nodiscard]] Task& task(int index) { return tasks[size_t(index)]; }
  [[nodiscard]] int find_buffer(const std::string& name, int device) const;  // -1: none
  [[nodiscard]] int64_t bytes(const Region& region) const;                // whole_buffer resolved
  [[nodiscard]] int64_t bytes(const std::vector<Region>& regions) const;  // their sum
};

// Whether the task does its work in this micro-batch.
[[nodiscard]] bool works_in(const Plan& plan, const Task& task, int64_t micro_batch);

// "step 3", or "step 3, micro-batch 1 of 4" where a step has several, or "batch 3" of a plan that
// tests: as users count them, from 1.
// `micro_batch` counts from 0.
[[nodiscard]] std::string step_name(const Plan& plan, int64_t micro_batch);

[[nodiscard]] bool is_forward(LayerPass pass);  // the statistics pass included
[[nodiscard]] bool repeats(const Task& task);   // a forward pass once more
[[nodiscard]] bool is_statistics(LayerPass pass);
// The scratch buffer and the statistics that the binding uses in such a pass.
[[nodiscard]] int scratch_of(const PlanBinding& binding, LayerPass pass);
[[nodiscard]] const Region& statistics_of(const PlanBinding& binding, LayerPass pass);

// The fraction of the layer's arithmetic for a row that the binding computes: 1 without slices.
struct Net;
[[nodiscard]] double slice_fraction(const Net& net, const PlanBinding& binding);

// Error naming the task if a task has no stream, waits for itself or a later task of its
// micro-batch, a region exceeds its buffer, or a label occurs twice.
void validate(const Plan& plan);

}  // namespace tandem
