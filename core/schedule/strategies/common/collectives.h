// How the gradients of a bucket become new weights on every device, in tasks that any strategy may
// use: copies and additions in a fixed order, so that the results have the same bits every time. A
// device's communication stream receives, its send stream sends, its update stream adds and
// updates: so a device sends, receives and adds at once, and every link that a reduction uses can
// be busy all the time.
//   serial  every device sends to the root (device 0), which adds, updates, and broadcasts:
//           (N - 1) x bytes through the root's links, each way.
//   tree    pairs are added, then pairs of pairs, up to the root, and the new weights are broadcast
//           down: ceil(log2 N) x bytes, each way.
//   ring    as ring_group.h says: reduce-scatter, update by each part's owner, all-gather:
//           2 (N - 1) / N x bytes through every link, all at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/schedule/strategies/common/buckets.h"

namespace tandem {

namespace stages {
constexpr Stage backward{9, "backward", "#fb8072"};
constexpr Stage reduce_gradients{10, "reduce_gradients", "#b3de69"};
constexpr Stage update{11, "update", "#8dd3c7"};
constexpr Stage broadcast_weights{12, "broadcast_weights", "#bebada"};
}  // namespace stages

class Collective {
 public:
  // Error for an unknown reduction ("serial", "tree", "ring"). `builder` outlives it.
  [[nodiscard]] static std::unique_ptr<Collective> make(const std::string& reduction,
                                                        PlanBuilder& builder, int pieces = 2);
  // A ring of some of the devices. `pieces`: as in RingGroup.
  [[nodiscard]] static std::unique_ptr<Collective> make_ring(PlanBuilder& builder,
                                                             const std::vector<int>& devices,
                                                             int pieces);
  virtual ~Collective() = default;

  // Appends the tasks that add up the bucket's gradients, and those of the norms that the rule
  // needs.
  virtual void emit_reduction(const Bucket& bucket) = 0;
  // The solver's rule over the bucket, wherever it runs.
  virtual void emit_update(const Bucket& bucket) = 0;
  // The new weights to every device.
  virtual void emit_broadcast(const Bucket& bucket) = 0;

  // Devices other than the root update, so they need its found_inf flag.
  [[nodiscard]] virtual bool updates_everywhere() const = 0;
  // Gradients and weights travel on links of their own.
  [[nodiscard]] virtual bool is_duplex() const = 0;
  // Seconds for which the links are busy, in each direction.
  [[nodiscard]] virtual double seconds(const Bucket& bucket) const = 0;
};

// The devices in an order in which neighbors are close: the root first, then each time the device
// with the fastest transfer from the one before. Without a topology: by number.
[[nodiscard]] std::vector<int> device_order(const StrategyInputs& inputs);
// Some of them; the first stays the first.
[[nodiscard]] std::vector<int> device_order(const StrategyInputs& inputs,
                                            const std::vector<int>& devices);
// Seconds of a copy between two devices while the links are otherwise idle, by the topology if
// there is one, else by the link.
[[nodiscard]] double transfer_seconds(const StrategyInputs& inputs, int source, int target,
                                      int64_t bytes);

}  // namespace tandem
