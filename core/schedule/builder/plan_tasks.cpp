// The half of the plan builder for tasks that are no layer's pass: copies, sums, updates.
#include <fmt/format.h>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {

void PlanBuilder::emit_copy(const std::string& label, Stage stage, int layer,
                            const std::vector<StreamId>& streams, std::vector<CopySegment> segments,
                            When when) {
  Task task;
  task.label = label;
  task.stage = stage;
  task.layer = layer;
  task.streams = streams;
  for (const CopySegment& segment : segments) {
    task.reads.push_back(segment.source);
    task.writes.push_back(segment.target);
  }
  task.work = CopyWork{std::move(segments)};
  task.when = when;
  emit(std::move(task));
}

void PlanBuilder::emit_transfer(const std::string& what, Stage stage, int layer, int source,
                                int target, std::vector<CopySegment> segments, When when,
                                const TransferStreams& streams) {
  emit_copy(fmt::format("{} @{}->@{}", what, source, target), stage, layer,
            {{target, streams.target}, {source, streams.source}}, std::move(segments), when);
}

void PlanBuilder::emit_rearrangement(const std::string& label, Stage stage, int layer, int device,
                                     std::vector<CopySegment> segments, std::vector<Region> reads,
                                     std::vector<Region> writes) {
  Task task;
  task.label = label;
  task.stage = stage;
  task.layer = layer;
  task.streams = {{device, StreamKind::copy}};
  task.reads = std::move(reads);
  task.writes = std::move(writes);
  task.work = CopyWork{std::move(segments)};
  emit(std::move(task));
}

void PlanBuilder::emit_add(const std::string& label, Stage stage, StreamId stream,
                           const Region& target, std::vector<Region> sources, When when) {
  Task task;
  task.label = label;
  task.stage = stage;
  task.streams = {stream};
  task.reads = sources;
  task.writes = {target};
  task.work = AddWork{target, std::move(sources)};
  task.when = when;
  emit(std::move(task));
}

void PlanBuilder::emit_norms(const std::string& label, Stage stage, int device,
                             const std::vector<int>& arrays, StreamKind stream) {
  if (!inputs_.needs_norms) return;
  Task task;
  task.label = label;
  task.stage = stage;
  task.streams = {{device, stream}};
  for (const Interval& range : weight_ranges(net(), arrays)) {
    task.reads.push_back(gradients(device, range));
    task.reads.push_back(weights(device, range));
  }
  task.writes = norms(device, arrays);
  NormWork work;
  for (const int array : arrays) {
    const WeightArray& of = net().weights[size_t(array)];
    const Interval range = buffers::bytes_of(of);
    work.arrays.push_back({array, weights(device, range), gradients(device, range)});
  }
  work.norms = {task.writes.front().buffer, 0, whole_buffer};
  task.work = std::move(work);
  task.when = When::last_micro_batch;
  emit(std::move(task));
}

void PlanBuilder::emit_merge(Stage stage, int layer, LayerPass pass,
                             const std::vector<int>& members, StreamKind stream) {
  const int root = members.front();
  MergeWork work;
  work.binding = binding(root, layer);
  work.pass = pass;
  work.target = statistics(root, layer, pass);
  for (size_t i = 1; i < members.size(); ++i) {
    work.sources.push_back(received_statistics(members[i], layer, pass, root));
  }
  Task task;
  task.label =
      fmt::format("merge {} {} @{}", to_string(pass), net().layers[size_t(layer)].name, root);
  task.stage = stage;
  task.layer = layer;
  task.streams = {{root, stream}};
  task.reads = work.sources;
  task.writes = {work.target};
  task.work = std::move(work);
  emit(std::move(task));
}

void PlanBuilder::emit_check(const std::string& label, StreamId stream, int scalar) {
  const CheckWork work{metric(stream.device, scalar), found_inf(stream.device)};
  Task task;
  task.label = label;
  task.stage = Stage::report;
  task.streams = {stream};
  task.reads = {work.values};
  task.writes = {work.found_inf};
  task.work = work;
  emit(std::move(task));
}

}  // namespace tandem
