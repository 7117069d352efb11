// The part of the plan builder for the solver's updates and what they keep.
#include <algorithm>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {

namespace {

constexpr int64_t alignment = 64;

int64_t aligned(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// What lies at `whole` for the range, of a part of it.
Region within(const Region& whole, Interval range, Interval part) {
  if (whole.buffer < 0) return {};
  return {whole.buffer, whole.offset + part.begin - range.begin, part.count()};
}

}  // namespace

Interval PlanBuilder::range_of(const WeightSlice& slice) const {
  return buffers::bytes_of(net().weights[size_t(slice.weight)], slice.elements);
}

std::vector<Interval> PlanBuilder::ranges_of(const std::vector<WeightSlice>& slices) const {
  std::vector<Interval> ranges;
  for (const WeightSlice& slice : slices) ranges.push_back(range_of(slice));
  return merged(std::move(ranges));
}

std::vector<WeightSlice> PlanBuilder::slices_in(const std::vector<int>& weights,
                                                Interval range) const {
  std::vector<WeightSlice> slices;
  for (const int weight : weights) {
    const WeightArray& array = net().weights[size_t(weight)];
    const Interval wanted{range.begin / buffers::float_bytes - array.offset,
                          range.end / buffers::float_bytes - array.offset};
    const Interval elements = intersection(wanted, {0, array.count});
    if (!elements.is_empty()) slices.push_back({weight, elements});
  }
  return slices;
}

StateRegion PlanBuilder::keep_state(int device, Interval range, bool is_extended) {
  if (inputs_.solver_states == 0) return {};
  const char* name = is_extended ? buffers::extended_state : buffers::state;
  const int index = buffer({name, device, BufferKind::persistent, 0, 1, {}, is_extended});
  Buffer& state = plan_.buffers[size_t(index)];
  const int64_t begin = state.bytes, stride = aligned(range.count());
  state.bytes += inputs_.solver_states * stride;
  plan_.state_at.push_back({device, range, begin, stride, is_extended});
  return {{index, begin, range.count()}, stride};
}

void PlanBuilder::emit_update(const std::string& label, Stage stage, int device,
                              const std::vector<int>& arrays, StreamKind stream) {
  emit_update(label, stage, device, slices_in(arrays, all_weights(net())), stream);
}

void PlanBuilder::emit_update(const std::string& label, Stage stage, int device,
                              const std::vector<WeightSlice>& slices, StreamKind stream,
                              const StateRegion* state) {
  UpdateWork work;
  work.step = step(device);
  work.found_inf = found_inf(device);
  Task task;
  task.label = label;
  task.stage = stage;
  task.streams = {{device, stream}};
  task.reads = {work.step, work.found_inf};
  std::vector<int> arrays;
  for (const WeightSlice& slice : slices) arrays.push_back(slice.weight);
  for (const Interval& range : ranges_of(slices)) {
    const StateRegion kept = state != nullptr ? *state : keep_state(device, range);
    task.reads.push_back(gradients(device, range));
    task.writes.push_back(weights(device, range));
    for (int i = 0; i < inputs_.solver_states; ++i) {
      task.writes.push_back(
          {kept.first.buffer, kept.first.offset + i * kept.stride, range.count()});
    }
    for (const WeightSlice& slice : slices) {
      const Interval mine = range_of(slice);
      if (!range.contains(mine)) continue;
      work.arrays.push_back({slice.weight, weights(device, mine), gradients(device, mine),
                             within(kept.first, range, mine), kept.stride});
    }
  }
  if (inputs_.needs_norms) {
    const std::vector<Region> mine = norms(device, arrays);
    work.norms = {mine.front().buffer, 0, whole_buffer};
    if (inputs_.clips_gradients) {
      task.reads.push_back(work.norms);
    } else {
      task.reads.insert(task.reads.end(), mine.begin(), mine.end());
    }
  }
  task.when = When::last_micro_batch;
  task.work = std::move(work);
  emit(std::move(task));
}

}  // namespace tandem
