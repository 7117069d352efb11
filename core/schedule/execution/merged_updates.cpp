#include "core/schedule/execution/merged_updates.h"

#include "core/schedule/plan/buffers.h"

namespace tandem {

namespace {

bool follows(const Region& region, const Region& before, int64_t gap) {
  return region.buffer == before.buffer && region.offset == before.offset + before.bytes + gap;
}

bool is_whole(const Net& net, const ArrayUpdate& array) {
  return array.weights.bytes == buffers::bytes_of(net.weights[size_t(array.weight)]).count();
}

bool can_be_merged(const Net& net, const ArrayUpdate& before, const ArrayUpdate& array) {
  const int64_t gap = array.weights.offset - before.weights.offset - before.weights.bytes;
  const WeightArray& a = net.weights[size_t(before.weight)];
  const WeightArray& b = net.weights[size_t(array.weight)];
  return gap >= 0 && gap < memory_alignment && follows(array.weights, before.weights, gap) &&
         follows(array.gradient, before.gradient, gap) && follows(array.state, before.state, gap) &&
         array.state_stride == before.state_stride && a.rate_multiplier == b.rate_multiplier &&
         a.decay_multiplier == b.decay_multiplier;
}

}  // namespace

std::vector<ArrayUpdate> merged_updates(const Net& net, const Plan& plan,
                                        const std::vector<ArrayUpdate>& arrays, bool merges) {
  std::vector<ArrayUpdate> result;
  bool last_is_whole = false;
  for (ArrayUpdate array : arrays) {
    for (Region* region : {&array.weights, &array.gradient, &array.state}) {
      region->bytes = plan.bytes(*region);
    }
    if (!net.weights[size_t(array.weight)].trained() || array.weights.bytes == 0) continue;
    const bool both_are_whole = last_is_whole && is_whole(net, array);
    last_is_whole = is_whole(net, array);
    if (merges && both_are_whole && can_be_merged(net, result.back(), array)) {
      ArrayUpdate& last = result.back();
      last.weights.bytes = array.weights.offset + array.weights.bytes - last.weights.offset;
      last.gradient.bytes = last.state.bytes = last.weights.bytes;
    } else {
      result.push_back(array);
    }
  }
  return result;
}

}  // namespace tandem
