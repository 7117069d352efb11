// The memory of a plan under construction: its buffers, which are created at first use, their
// regions for each tensor, gradient and weight, and the bindings (uses of layers) over these
// regions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/numbers/interval.h"
#include "core/base/numbers/shape.h"
#include "core/data/loader/batch_layout.h"
#include "core/model/net/net.h"
#include "core/schedule/builder/strategy_inputs.h"
#include "core/schedule/builder/weight_ranges.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// Where the state of some weights lies for their update: in the first of the solver's arrays, and
// the bytes to the next one.
struct StateRegion {
  Region first;
  int64_t stride = 0;
};

// The parts `some` of a region of equal parts `all`: of its rows, say. A region that is none stays
// so.
[[nodiscard]] Region part_of(const Region& whole, Interval all, Interval some);

class PlanRegions {
 public:
  enum class Purpose { training, testing };

  // Rows are divided as share() says. Error if the batch has fewer rows than there are devices.
  PlanRegions(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose);
  // Device d works on rows[d] of the batch, of which there is at least one.
  PlanRegions(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose,
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

  // Returns the buffer of that name and device; its other properties are of the first call.
  int buffer(const Buffer& description);
  // The whole of a transient buffer of one slot.
  [[nodiscard]] Region transient(int device, const std::string& name, int64_t bytes);
  // The net's weights, their gradients, and what arrived on device `root` of another device's
  // gradients.
  [[nodiscard]] Region weights(int device, Interval range);
  [[nodiscard]] Region gradients(int device, Interval range);
  [[nodiscard]] Region received_gradients(int sender, Interval range, int root = 0);
  // What copies these ranges of one of the two arrays to another device.
  using WeightsOrGradients = Region (PlanRegions::*)(int device, Interval range);
  [[nodiscard]] std::vector<CopySegment> copies(WeightsOrGradients array, int source, int target,
                                                const std::vector<Interval>& ranges);
  // As received_gradients(), for a buffer that several senders use one after the other. `name`
  // distinguishes it from others.
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
  // The rows `some` of the batch, all of which the shard has.
  [[nodiscard]] Region tensor(int shard, int index, Interval some);
  [[nodiscard]] Region tensor_gradient(int shard, int index, Interval some);
  // What the layer's statistics pass (forward_statistics or backward_statistics) writes on the
  // device, and what arrived on device `root` of another's. No buffer where the layer has no such
  // pass.
  [[nodiscard]] Region statistics(int device, int layer, LayerPass pass);
  [[nodiscard]] Region received_statistics(int sender, int layer, LayerPass pass, int root = 0);
  // The layer's use at the shard, over the shard's rows.
  int binding(int shard, int layer);
  // The binding that binding() would add. A strategy that needs another one changes it and calls
  // add_binding().
  [[nodiscard]] PlanBinding describe(int shard, int layer);
  int add_binding(PlanBinding use);
  // Restricts the binding to these output channels, with their weights and gradients. Its outputs
  // stay whole, and no activation is fused. Requires a layer type that can be sliced.
  void slice_outputs(PlanBinding& use, Interval channels) const;
  // Restricts a binding over all of the shard's rows to some of them. Requires a layer that works
  // on single samples and saves nothing between its passes.
  void slice_rows(PlanBinding& use, int shard, Interval some) const;
  // The device's weights and gradients, and its extended memory, are in that memory
  // (Buffer::memory). Before anything else asks for them.
  void keep_weights_in(int device, const std::string& memory) {
    memory_of_[size_t(device)] = memory;
  }
  // Adds memory for the state of a range that the device updates to the plan.
  [[nodiscard]] StateRegion keep_state(int device, Interval range, bool is_extended = false);

 protected:
  // Takes the memory of all states from the plan again.
  void forget_states();
  [[nodiscard]] Purpose purpose() const { return purpose_; }
  [[nodiscard]] const std::string& name_of(int shard) const { return shards_[size_t(shard)].name; }
  // The shard's memory of that name on its device.
  [[nodiscard]] Buffer at(int shard, const std::string& name, int64_t bytes, int slots = 1) const;
  // The layout of rows as the net reads them, and of the global batch as the host has it.
  [[nodiscard]] BatchLayout batch_layout(int64_t row_count) const;
  [[nodiscard]] BatchLayout global_layout() const;
  [[nodiscard]] Region input(int shard);
  // Whether the layer's pass writes the gradient of a shared weight to a buffer of its own, which a
  // task then adds to the gradient array.
  [[nodiscard]] bool has_own_gradient(int layer, int weight) const;
  // Arrays laid out as the net's weights keep only what tasks touch.
  void pack();

 private:
  // The buffers of a use of a layer whose sizes the kernel says.
  struct KernelBuffers {
    int saved = -1, forward_scratch = -1, backward_scratch = -1;
  };
  // Some rows of the batch on a device, and which of its buffers are known by what they are of (-1:
  // not yet): to find one by its name takes longer.
  struct Shard {
    int device = 0;
    Interval rows;
    std::string name;
    Region input{}, metrics{};
    std::vector<int> tensors{}, gradients{};      // by tensor
    std::vector<int> bindings{};                  // by layer
    std::vector<KernelBuffers> kernel_buffers{};  // by layer
  };
  struct WeightBuffers {
    int weights = -1, gradients = -1;
  };

  void find_scalars();
  void number_outputs();
  void find_last_users();
  [[nodiscard]] std::string output_name(int tensor) const;
  [[nodiscard]] KernelBuffers kernel_buffers(int shard, int layer, bool goes_backward);
  // The buffer in such a list, made at the first call.
  template <class Describe>
  [[nodiscard]] int known_buffer(std::vector<int>& list, int index, const Describe& describe) {
    if (list.empty()) list.assign(net().tensors.size(), -1);
    if (list[size_t(index)] < 0) {
      const int made = buffer(describe());
      list[size_t(index)] = made;
    }
    return list[size_t(index)];
  }
  // Where the binding's tensors, weights and their gradients lie.
  void describe_tensors(PlanBinding& use, int shard);
  [[nodiscard]] const std::vector<Shape>& shapes(int shard);
  [[nodiscard]] int64_t tensor_bytes(int shard, int index);
  [[nodiscard]] Region constant(int device, int scalar);
  [[nodiscard]] Buffer constants_of(int device) const;
  [[nodiscard]] Region output_gradient(int shard, int layer, size_t output);
  [[nodiscard]] BufferKind gradients_kind(int device) const;
  // A buffer laid out as the net's weights, which pack() reduces to what is touched.
  [[nodiscard]] Region weight_array(const std::string& name, int device, BufferKind kind,
                                    Interval range);
  [[nodiscard]] Region weight_gradient(int device, int layer, int weight);

  StrategyInputs inputs_;
  Purpose purpose_;
  Plan plan_;
  std::vector<Shard> shards_;
  std::vector<WeightBuffers> weight_buffers_;     // by device
  std::vector<std::string> memory_of_;            // by device
  std::unordered_multimap<size_t, int> buffers_;  // by hash of device and name
  std::set<int> weight_arrays_;                   // buffers
  std::map<int64_t, std::vector<Shape>> shapes_;  // by row count
  std::vector<int> scalar_of_tensor_;             // index in net().scalars; -1: none
  std::vector<int> number_of_output_;             // by tensor, of its producer's; -1: none
  std::map<int, int> constants_;                  // buffers of the losses' weights, by device
  std::vector<int> last_users_;  // of each weight array: whose backward pass is first
};

}  // namespace tandem
