#include "core/schedule/builder/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/plugin/layer_questions.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {
namespace {

size_t pass_index(const LayerWork& work) {
  return size_t(work.binding) * layer_passes + size_t(work.pass);
}

void append(std::vector<Region>& to, const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    if (region.buffer >= 0) to.push_back(region);
  }
}

}  // namespace

Plan PlanBuilder::take() {
  pack();
  return std::move(plan());
}

void PlanBuilder::restart() {
  kept_passes_.resize(plan().bindings.size() * layer_passes);
  for (Task& task : plan().tasks) {
    const auto* work = std::get_if<LayerWork>(&task.work);
    if (work != nullptr) kept_passes_[pass_index(*work)] = std::move(task);
  }
  plan().tasks.clear();
  forget_states();
  pending_ = {};
  written_gradients_.clear();
  applied_ahead_.clear();
}

void PlanBuilder::emit(Task task) {
  pending_.follow(net(), plan(), task);
  plan().tasks.push_back(std::move(task));
}

std::string PlanBuilder::label(LayerPass pass, int layer, int shard) const {
  const std::string& name = name_of(shard);
  return fmt::format("{} {} @{}{}", to_string(pass), net().layer(layer).name, device_of(shard),
                     name.empty() ? "" : " " + name);
}

void PlanBuilder::emit_statistics(int shard, int layer, Stage stage, LayerPass pass) {
  if (statistics(device_of(shard), layer, pass).buffer < 0) return;
  emit_own_pass(shard, layer, stage, pass);
}

void PlanBuilder::emit_forward(int shard, int layer) {
  if (net().makes_views(layer)) return;
  const Layer& l = net().layer(layer);
  if (l.fused_into >= 0 && !pending_.has(plan(), tensor(shard, l.inputs[0]))) {
    if (l.gradient_fused_into == l.fused_into) applied_ahead_.emplace(shard, layer);
    return;
  }
  emit_own_pass(shard, layer, Stage::forward, LayerPass::forward);
}

bool PlanBuilder::has_backward_pass(int shard, int layer) const {
  return net().layer(layer).has_backward() && !net().makes_gradient_views(layer) &&
         !applied_ahead_.contains({shard, layer});
}

void PlanBuilder::emit_backward(int shard, int layer, Stage stage) {
  if (!has_backward_pass(shard, layer)) return;
  if (net().layer(layer).wants_backward_weights) emit_backward_weights(shard, layer, stage);
  emit_backward_data(shard, layer, stage, rows(shard));
}

bool PlanBuilder::emit_backward_data(int shard, int layer, Stage stage, Interval some) {
  const Layer& l = net().layer(layer);
  if (!l.wants_backward_data || !has_backward_pass(shard, layer)) return false;
  if (some.count() == rows(shard).count()) {
    emit_own_pass(shard, layer, stage, LayerPass::backward_data);
  } else {
    PlanBinding use = describe(shard, layer);
    slice_rows(use, shard, some);
    emit_pass(fmt::format("{}, rows {}-{}", label(LayerPass::backward_data, layer, shard),
                          some.begin, some.end),
              stage, {add_binding(std::move(use)), LayerPass::backward_data, false});
  }
  if (l.activation_before != TANDEM_ACTIVATION_NONE) {
    applied_ahead_.emplace(shard, net().tensor(l.inputs[0]).producer);
  }
  return true;
}

void PlanBuilder::emit_backward_weights(int shard, int layer, Stage stage) {
  emit_own_pass(shard, layer, stage, LayerPass::backward_weights,
                accumulates(device_of(shard), layer));
  add_own_gradients(shard, layer, stage);
}

// The first write of a micro-batch overwrites, so that nothing has to be cleared.
bool PlanBuilder::accumulates(int device, int layer) {
  const Layer& l = net().layer(layer);
  size_t own = 0, written = 0;
  for (const int weight : l.weights) {
    if (net().weight(weight).kind != TANDEM_TRAINED) continue;
    if (has_own_gradient(layer, weight)) continue;
    ++own;
    if (!written_gradients_.emplace(device, weight).second) ++written;
  }
  if (written != 0 && written != own) {
    throw error(
        "{}: in this order of the plan some of its shared weights already have a gradient, others "
        "do not",
        l.title());
  }
  return written != 0;
}

void PlanBuilder::add_own_gradients(int shard, int layer, Stage stage) {
  const Layer& l = net().layer(layer);
  const int use = binding(shard, layer), device = device_of(shard);
  for (size_t i = 0; i < l.weights.size(); ++i) {
    const Region own = plan().binding(use).weight_gradients[i];
    if (own.buffer < 0 || !has_own_gradient(layer, l.weights[i])) continue;
    const WeightArray& array = net().weight(l.weights[i]);
    emit_add(fmt::format("add gradient of {} to {} @{}", l.name, array.name, device), stage,
             {device, StreamKind::compute}, gradients(device, buffers::bytes_of(array)), {own},
             When::last_micro_batch);
  }
}

void PlanBuilder::emit_own_pass(int shard, int layer, Stage stage, LayerPass pass,
                                bool accumulate) {
  const LayerWork work{binding(shard, layer), pass, accumulate};
  const size_t index = pass_index(work);
  if (index >= kept_passes_.size() || kept_passes_[index].streams.empty()) {
    return emit_pass(label(pass, layer, shard), stage, work);
  }
  Task task = std::exchange(kept_passes_[index], {});
  task.stage = stage;
  task.work = work;
  emit(std::move(task));
}

void PlanBuilder::emit_pass(const std::string& label, Stage stage, const LayerWork& work) {
  const PlanBinding& use = plan().binding(work.binding);
  const Layer& l = net().layer(use.layer);
  Task task{label, stage, use.layer, {{use.device, StreamKind::compute}}};
  task.work = work;
  // Any kernel may look at the step; declaring it for all costs no wait, since a device's copy
  // stream must wait for the last layer that reads the input anyway.
  append(task.reads, {use.step, use.normaliser});
  append(task.reads, use.weights);
  append(task.writes, {{scratch_of(use, work.pass), 0, whole_buffer}});
  append(is_statistics(work.pass) ? task.writes : task.reads, {statistics_of(use, work.pass)});
  if (l.has(TANDEM_LOSS) || l.has(TANDEM_METRIC)) append(task.reads, {use.row_labels});
  if (is_forward(work.pass)) append(task.reads, use.inputs);
  if (work.pass == LayerPass::forward) {
    append(task.reads, {use.addend});
    append(task.writes, use.outputs);
    append(task.writes, {{use.saved, 0, whole_buffer}});
    for (size_t i = 0; i < l.weights.size(); ++i) {
      if (net().weight(l.weights[i]).kind == TANDEM_STATE && purpose() == Purpose::training) {
        append(task.writes, {use.weights[i]});
      }
    }
  } else if (!is_forward(work.pass)) {
    append(task.reads, use.output_gradients);
    append(task.reads, {{use.saved, 0, whole_buffer}});
    if (l.backward_reads_inputs()) {
      append(task.reads, use.inputs);
    } else {
      for (size_t i = 0; i < use.inputs.size(); ++i) {
        if (is_label(*l.type, i)) append(task.reads, {use.inputs[i]});
      }
    }
    if (l.has(TANDEM_BACKWARD_READS_OUTPUTS)) append(task.reads, use.outputs);
    const bool both = work.pass == LayerPass::backward;
    if (both || work.pass == LayerPass::backward_data) append(task.writes, use.input_gradients);
    if (both || work.pass == LayerPass::backward_weights) append(task.writes, use.weight_gradients);
  }
  emit(std::move(task));
}

void PlanBuilder::emit_copy(const std::string& label, Stage stage, int layer,
                            const std::vector<StreamId>& streams, std::vector<CopySegment> segments,
                            When when) {
  Task task{label, stage, layer, streams};
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
  Task task{label, stage, layer, {{device, StreamKind::copy}}};
  task.reads = std::move(reads);
  task.writes = std::move(writes);
  task.work = CopyWork{std::move(segments)};
  emit(std::move(task));
}

void PlanBuilder::emit_add(const std::string& label, Stage stage, StreamId stream,
                           const Region& target, std::vector<Region> sources, When when) {
  Task task{label, stage, -1, {stream}};
  task.reads = sources;
  task.writes = {target};
  task.work = AddWork{target, std::move(sources)};
  task.when = when;
  emit(std::move(task));
}

void PlanBuilder::emit_norms(const std::string& label, Stage stage, int device,
                             const std::vector<int>& arrays, StreamKind stream) {
  if (!inputs().needs_norms) return;
  Task task{label, stage, -1, {{device, stream}}};
  for (const Interval& range : weight_ranges(net(), arrays)) {
    task.reads.push_back(gradients(device, range));
    task.reads.push_back(weights(device, range));
  }
  task.writes = norms(device, arrays);
  NormWork work;
  for (const int array : arrays) {
    const Interval range = buffers::bytes_of(net().weight(array));
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
  const std::string& name = net().layer(layer).name;
  Task task{
      fmt::format("merge {} {} @{}", to_string(pass), name, root), stage, layer, {{root, stream}}};
  task.reads = work.sources;
  task.writes = {work.target};
  task.work = std::move(work);
  emit(std::move(task));
}

void PlanBuilder::emit_check(const std::string& label, StreamId stream, int scalar) {
  const CheckWork work{metric(stream.device, scalar), found_inf(stream.device)};
  Task task{label, Stage::report, -1, {stream}};
  task.reads = {work.values};
  task.writes = {work.found_inf};
  task.work = work;
  emit(std::move(task));
}

std::string PlanBuilder::input_label(const char* what, int shard) const {
  const std::string& name = name_of(shard);
  return fmt::format("{} {}{}input @{}", what, name, name.empty() ? "" : " ", device_of(shard));
}

void PlanBuilder::emit_input(int shard, bool with_data) {
  const Interval mine = rows(shard);
  const BatchLayout global = global_layout(), local = batch_layout(mine.count());
  const int from = buffer({buffers::batch, TANDEM_HOST, BufferKind::external, global.bytes, 1, {}});
  const int to = input(shard).buffer;
  // The shard's rows of an array that begins there in the batch.
  const auto my_rows = [&](int64_t begin, int64_t row_bytes) {
    return Region{from, begin + mine.begin * row_bytes, mine.count() * row_bytes};
  };
  const auto copy_to = [&](int64_t begin, const Region& source) {
    return CopySegment{source, {to, begin, source.bytes}};
  };
  std::vector<CopySegment> segments{
      copy_to(0, {from, 0, sizeof(tandem_step)}),
      copy_to(local.label_offset, my_rows(global.label_offset, sizeof(float)))};
  const Region data = my_rows(global.data_offset, global.sample_bytes);
  Region pixels;
  if (with_data && inputs().bytes) {
    pixels = {buffer(at(shard, buffers::pixels, data.bytes)), 0, data.bytes};
    segments.push_back({data, pixels});
  } else if (with_data) {
    segments.push_back(copy_to(local.data_offset, data));
  }
  for (size_t i = 0; with_data && i < global.more.size(); ++i) {
    const int64_t row_bytes = element_count(global.more[i]) * buffers::float_bytes;
    segments.push_back(copy_to(local.more_offsets[i], my_rows(global.more_offsets[i], row_bytes)));
  }
  emit_copy(input_label("copy", shard), Stage::input, -1, {{device_of(shard), StreamKind::copy}},
            std::move(segments));
  if (pixels.buffer < 0) return;
  emit_conversion(shard, pixels, {to, local.data_offset, mine.count() * local.sample_bytes});
}

// On the stream that copied them, so that the pixels' memory is free again before the next batch
// comes.
void PlanBuilder::emit_conversion(int shard, const Region& pixels, const Region& target) {
  ConvertWork work{batch_layout(1).sample, pixels, target, *inputs().bytes};
  work.shape.n = rows(shard).count();
  Task task{
      input_label("convert", shard), Stage::input, -1, {{device_of(shard), StreamKind::copy}}};
  task.reads = {pixels};
  task.writes = {target};
  task.work = work;
  emit(std::move(task));
}

void PlanBuilder::emit_update(const std::string& label, Stage stage, int device,
                              const std::vector<int>& arrays, StreamKind stream) {
  emit_update(label, stage, device, slices_in(net(), arrays, all_weights(net())), stream);
}

void PlanBuilder::emit_update(const std::string& label, Stage stage, int device,
                              const std::vector<WeightSlice>& slices, StreamKind stream,
                              const StateRegion* state) {
  UpdateWork work;
  work.step = step(device);
  work.found_inf = found_inf(device);
  Task task{label, stage, -1, {{device, stream}}};
  task.reads = {work.step, work.found_inf};
  std::vector<int> arrays;
  for (const WeightSlice& slice : slices) arrays.push_back(slice.weight);
  for (const Interval& range : ranges_of(net(), slices)) {
    const StateRegion kept = state != nullptr ? *state : keep_state(device, range);
    task.reads.push_back(gradients(device, range));
    task.writes.push_back(weights(device, range));
    for (int i = 0; i < inputs().solver_states; ++i) {
      task.writes.push_back(
          {kept.first.buffer, kept.first.offset + i * kept.stride, range.count()});
    }
    for (const WeightSlice& slice : slices) {
      const Interval mine = range_of(net(), slice);
      if (!range.contains(mine)) continue;
      work.arrays.push_back({slice.weight, weights(device, mine), gradients(device, mine),
                             part_of(kept.first, range, mine), kept.stride});
    }
  }
  if (inputs().needs_norms) {
    const std::vector<Region> mine = norms(device, arrays);
    work.norms = {mine.front().buffer, 0, whole_buffer};
    if (inputs().clips_gradients) {
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
