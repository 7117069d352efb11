// The AlexNet-like test of docs/design/strategies.md §1: whether nearly all of the compute time
// is in the conv part of the net and nearly all of the weights are in its FC part.
#pragma once

#include <string>

#include "core/model/net/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/strategies/common/option_table.h"

namespace tandem {

struct AlexNetThresholds {
  double time_threshold = 0.1, weight_threshold = 0.1;  // fractions of the whole
};

// --time-threshold and --weight-threshold.
[[nodiscard]] const OptionTable<AlexNetThresholds>& threshold_options();

struct AlexNetTest {
  bool alexnet_like = false;
  std::string p;            // where backward time passes the first threshold: the FC part begins
  double time_share = 0;    // t/T at p
  double weight_share = 0;  // v/V of the layers before p
  std::string explanation;  // with both numbers and thresholds, for the user
};
[[nodiscard]] AlexNetTest test_alexnet_like(const Net& net, const CostTable& costs,
                                            const AlexNetThresholds& thresholds);

}  // namespace tandem
