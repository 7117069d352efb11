// Which device of a group computes and updates which part of the net's weights: a slice of every
// layer whose type can be sliced by its outputs, and the other layers as a whole, one here and one
// there.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"

namespace tandem {

struct WeightShare {
  int device = 0;
  bool is_slice = false;
  Interval channels;  // of the outputs, of a slice
};

// Slices of a layer are done sooner, but every device needs all of the layer's inputs and errors;
// whole layers, one here and one there, need them once.
enum class Division { slices, slices_of_large, whole };
// As in --slices: "all", "large", "none".
[[nodiscard]] std::string to_text(Division division);

class WeightShares {
 public:
  // slices_of_large: layers that have more than half of a device's part of all weights.
  WeightShares(const Net& net, const std::vector<int>& devices, Division division);

  // Of a layer that wants backward_weights; none of another.
  [[nodiscard]] const std::vector<WeightShare>& of(int layer) const {
    return shares_[size_t(layer)];
  }
  // The trained weights that the share's update changes.
  [[nodiscard]] std::vector<Interval> ranges(int layer, const WeightShare& share) const;
  // By layer: the device has a share of it.
  [[nodiscard]] std::vector<bool> layers_of(int device) const;
  // Several layers use its weights.
  [[nodiscard]] bool is_shared(int layer) const;
  // Where the newest values of all weights are; what nobody trains is on device 0.
  [[nodiscard]] std::vector<Placement> places() const;

 private:
  [[nodiscard]] int64_t weights_of(int layer) const;

  const Net& net_;
  std::vector<std::vector<WeightShare>> shares_;  // by layer
};

}  // namespace tandem
