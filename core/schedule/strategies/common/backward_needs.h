// What a device needs for the backward pass over rows whose forward pass ran on another device: the
// tensors that are sent to it, and the layers whose forward pass it runs again, because their
// kernels save memory for the backward pass.
#pragma once

#include <set>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

struct BackwardNeeds {
  // For each layer the tensors to be sent when it is done, before a later layer can run in
  // place over them.
  std::vector<std::vector<int>> after;
  std::vector<int> again;  // layers, in order
  bool data = false;       // whether an input of the net other than the labels is needed
};

// `backward[l]`: layer l's backward_data or backward_weights runs there. Every layer that it reads
// from is per sample or a loss.
[[nodiscard]] BackwardNeeds backward_needs(const Net& net, const std::vector<bool>& backward);

}  // namespace tandem
