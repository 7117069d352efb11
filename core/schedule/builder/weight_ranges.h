// Which bytes of the net's weight array (or of any array laid out as it is) some weights take, and
// which weights lie in some bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/numbers/interval.h"
#include "core/model/net/net.h"

namespace tandem {

struct WeightSlice {  // some elements of a weight array of the net
  int weight = -1;
  Interval elements;
};

// The fewest intervals that hold these and nothing else but padding between them.
[[nodiscard]] std::vector<Interval> merged(std::vector<Interval> bytes);
[[nodiscard]] int64_t total_bytes(const std::vector<Interval>& ranges);

// The whole array; some of its weight arrays, in the fewest intervals.
[[nodiscard]] Interval all_weights(const Net& net);
[[nodiscard]] std::vector<Interval> weight_ranges(const Net& net, const std::vector<int>& weights);
// By weight array: the first layer that uses it, whose backward pass is the last one and completes
// the gradient; -1: none does.
[[nodiscard]] std::vector<int> first_users(const Net& net);

// A slice; some slices, in the fewest intervals.
[[nodiscard]] Interval range_of(const Net& net, const WeightSlice& slice);
[[nodiscard]] std::vector<Interval> ranges_of(const Net& net,
                                              const std::vector<WeightSlice>& slices);

// The elements of the layer's trained weight arrays that belong to these output channels.
[[nodiscard]] std::vector<WeightSlice> slices_of(const Net& net, int layer, Interval channels);
// The elements of these arrays that lie in the range.
[[nodiscard]] std::vector<WeightSlice> slices_in(const Net& net, const std::vector<int>& weights,
                                                 Interval range);

}  // namespace tandem
