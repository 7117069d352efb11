#include "core/schedule/builder/weight_ranges.h"

#include <algorithm>
#include <utility>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/memory_plan.h"

namespace tandem {

std::vector<Interval> merged(std::vector<Interval> bytes) {
  std::sort(bytes.begin(), bytes.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> result;
  for (const Interval& range : bytes) {
    if (!result.empty() && aligned(result.back().end) >= range.begin) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

std::vector<Interval> weight_ranges(const Net& net, const std::vector<int>& weights) {
  std::vector<Interval> ranges;
  for (const int weight : weights) ranges.push_back(buffers::bytes_of(net.weight(weight)));
  return merged(std::move(ranges));
}

Interval all_weights(const Net& net) {
  return {0, buffers::weight_bytes(net)};
}

int64_t total_bytes(const std::vector<Interval>& ranges) {
  int64_t bytes = 0;
  for (const Interval& range : ranges) bytes += range.count();
  return bytes;
}

std::vector<int> first_users(const Net& net) {
  std::vector<int> users(net.weights.size(), -1);
  for (size_t i = net.layers.size(); i-- > 0;) {
    for (const int weight : net.layers[i].weights) users[size_t(weight)] = static_cast<int>(i);
  }
  return users;
}

std::vector<WeightSlice> slices_of(const Net& net, int layer, Interval channels) {
  std::vector<WeightSlice> slices;
  for (const int weight : net.layer(layer).weights) {
    const WeightArray& array = net.weight(weight);
    const int64_t one = array.count / array.shape.n;
    if (array.trained()) {
      slices.push_back({weight, {channels.begin * one, channels.end * one}});
    }
  }
  return slices;
}

Interval range_of(const Net& net, const WeightSlice& slice) {
  return buffers::bytes_of(net.weight(slice.weight), slice.elements);
}

std::vector<Interval> ranges_of(const Net& net, const std::vector<WeightSlice>& slices) {
  std::vector<Interval> ranges;
  for (const WeightSlice& slice : slices) ranges.push_back(range_of(net, slice));
  return merged(std::move(ranges));
}

std::vector<WeightSlice> slices_in(const Net& net, const std::vector<int>& weights,
                                   Interval range) {
  std::vector<WeightSlice> slices;
  for (const int weight : weights) {
    const WeightArray& array = net.weight(weight);
    const Interval wanted{range.begin / buffers::float_bytes - array.offset,
                          range.end / buffers::float_bytes - array.offset};
    const Interval elements = intersection(wanted, {0, array.count});
    if (!elements.is_empty()) slices.push_back({weight, elements});
  }
  return slices;
}

}  // namespace tandem
