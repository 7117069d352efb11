// Which rows of the batch each device of E runs the backward pass over, and the messages in which
// their activation gradients travel to W, so that W begins before E has all of a layer's.
#pragma once

#include <string>
#include <vector>

#include "core/base/numbers/interval.h"
#include "core/schedule/builder/strategy_inputs.h"

namespace tandem {

struct AsymmetricGroups {
  // Devices: group E computes the gradients of activations, group W those of weights.
  std::vector<int> activations, weights;
  [[nodiscard]] std::string to_text() const;  // "E=0,2/W=1,3"
};

// Rows of the backward pass of a device of E: those of its own forward pass, for which it has all
// activations, or those of the forward pass of a device of W.
struct BackwardRows {
  int device = 0;
  Interval rows;
  int forward_on = 0;  // the device that ran the forward pass over them
  [[nodiscard]] bool is_own() const { return device == forward_on; }
};

// The division of all rows of the batch among E. Each device of E has its own rows and rows of the
// nearest devices of W, so that the numbers of rows differ by at most one. By device, its own rows
// first. The rows of forward passes are share(batch, devices, device).
[[nodiscard]] std::vector<BackwardRows> backward_rows(const StrategyInputs& inputs,
                                                      const AsymmetricGroups& groups);

// A message with the gradients of some rows of part `part` (of backward_rows) for target `target`.
struct GradientMessage {
  size_t part = 0, target = 0;
  Interval rows;
};
// The messages of a tensor of `row_bytes` a row, in the order in which they leave for `targets`
// devices: every device sends one while another receives one. A message has about 4 MiB, unless
// that makes more than eight of a part.
[[nodiscard]] std::vector<GradientMessage> gradient_messages(const std::vector<BackwardRows>& parts,
                                                             size_t targets, int64_t row_bytes);

// The rows of a part in one backward pass: whole messages of it, at least 64 rows each,
// since fewer rows take a device longer than their share.
[[nodiscard]] std::vector<Interval> pass_rows(const std::vector<BackwardRows>& parts, size_t part,
                                              const std::vector<GradientMessage>& messages);

// Whether the layers between `layer` and `above` can run the backward pass over some of their rows.
[[nodiscard]] bool passes_some_rows(const Net& net, int layer, int above);

// Divides rows into messages of about 2 MiB, at most eight, so that a more urgent transfer waits
// for one of them only.
[[nodiscard]] std::vector<Interval> message_rows(Interval rows, int64_t row_bytes);

}  // namespace tandem
