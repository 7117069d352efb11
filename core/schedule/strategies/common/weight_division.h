// Which device of a group computes the gradients of which part of the net's weights and updates it:
// a slice of the output channels of each layer that is divided, and all of the others.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"

namespace tandem {

// A divided layer takes less time, but every device needs all of its inputs and activation
// gradients. A layer that is not divided needs them on one device only.
enum class Division { slices, slices_of_large, whole };
// As in --slices: "all", "large", "none".
[[nodiscard]] std::string to_text(Division division);

class WeightDivision {
 public:
  // slices_of_large: layers that have more than half of a device's part of all weights.
  WeightDivision(const Net& net, const std::vector<int>& devices, Division division);

  // Output channels by device, of a layer that wants backward_weights; none of another.
  [[nodiscard]] const std::vector<Placement>& of(int layer) const {
    return channels_[size_t(layer)];
  }
  // Over several devices.
  [[nodiscard]] bool is_divided(int layer) const { return of(layer).size() > 1; }
  // The trained weights of these channels, of one of `of(layer)`: bytes of the weight array.
  [[nodiscard]] std::vector<Interval> ranges(int layer, const Placement& channels) const;
  // By layer: the device has channels of it.
  [[nodiscard]] std::vector<bool> layers_of(int device) const;
  // Several layers use its weights.
  [[nodiscard]] bool is_shared(int layer) const;
  // Plan::weights_at; weights that are not trained are on device 0.
  [[nodiscard]] std::vector<Placement> weights_at() const;

 private:
  [[nodiscard]] int64_t weights_of(int layer) const;

  const Net& net_;
  std::vector<int> users_;                        // by weight array: how many layers
  std::vector<std::vector<Placement>> channels_;  // by layer
};

}  // namespace tandem
