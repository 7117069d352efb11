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

Region within(const Region& whole, const WeightRange& range, const WeightRange& part) {
  if (whole.buffer < 0) return {};
  return {whole.buffer, whole.offset + part.offset - range.offset, part.bytes};
}

}  // namespace

WeightRange PlanBuilder::range_of(const WeightPart& part) const {
  const WeightArray& array = net().weights[size_t(part.weight)];
  return {(array.offset + part.begin) * 4, (part.end - part.begin) * 4};
}

std::vector<WeightRange> PlanBuilder::ranges_of(const std::vector<WeightPart>& parts) const {
  std::vector<WeightRange> ranges;
  for (const WeightPart& part : parts) ranges.push_back(range_of(part));
  return merged(std::move(ranges));
}

std::vector<WeightPart> PlanBuilder::parts_in(const std::vector<int>& weights,
                                              const WeightRange& range) const {
  std::vector<WeightPart> parts;
  for (const int weight : weights) {
    const WeightArray& array = net().weights[size_t(weight)];
    const int64_t begin = std::max(range.offset / 4 - array.offset, int64_t{0});
    const int64_t end =
        std::min((range.offset + range.bytes) / 4 - array.offset, int64_t{array.count});
    if (begin < end) parts.push_back({weight, begin, end});
  }
  return parts;
}

StatePlace PlanBuilder::keep_state(int device, const WeightRange& range, bool is_extended) {
  if (inputs_.solver_states == 0) return {};
  const char* name = is_extended ? buffers::extended_state : buffers::state;
  const int index = buffer({name, device, BufferKind::persistent, 0, 1, {}, is_extended});
  Buffer& state = plan_.buffers[size_t(index)];
  const int64_t begin = state.bytes, stride = aligned(range.bytes);
  state.bytes += inputs_.solver_states * stride;
  plan_.state_parts.push_back({device, range.offset, range.bytes, begin, stride, is_extended});
  return {{index, begin, range.bytes}, stride};
}

void PlanBuilder::emit_update(const std::string& label, Stage stage, int device,
                              const std::vector<int>& arrays, StreamKind stream) {
  emit_update(label, stage, device, parts_in(arrays, all_weights(net())), stream);
}

void PlanBuilder::emit_update(const std::string& label, Stage stage, int device,
                              const std::vector<WeightPart>& parts, StreamKind stream,
                              const StatePlace* state) {
  UpdateWork work;
  work.step = step(device);
  work.found_inf = found_inf(device);
  Task task;
  task.label = label;
  task.stage = stage;
  task.streams = {{device, stream}};
  task.reads = {work.step, work.found_inf};
  std::vector<int> arrays;
  for (const WeightPart& part : parts) arrays.push_back(part.weight);
  for (const WeightRange& range : ranges_of(parts)) {
    const StatePlace place = state != nullptr ? *state : keep_state(device, range);
    task.reads.push_back(gradients(device, range));
    task.writes.push_back(weights(device, range));
    for (int i = 0; i < inputs_.solver_states; ++i) {
      task.writes.push_back(
          {place.first.buffer, place.first.offset + i * place.stride, range.bytes});
    }
    for (const WeightPart& part : parts) {
      const WeightRange mine = range_of(part);
      if (mine.offset < range.offset || mine.offset >= range.offset + range.bytes) continue;
      work.pieces.push_back({part.weight, weights(device, mine), gradients(device, mine),
                             within(place.first, range, mine), place.stride});
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
  task.when = When::last_batch;
  task.work = std::move(work);
  emit(std::move(task));
}

}  // namespace tandem
