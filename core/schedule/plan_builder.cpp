#include "core/schedule/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/schedule/buffers.h"

namespace tandem {

std::vector<WeightRange> weight_ranges(const Net& net, std::vector<int> weights) {
  constexpr int64_t alignment = 64;
  const auto array = [&](int w) -> const WeightArray& { return net.weights[size_t(w)]; };
  std::sort(weights.begin(), weights.end(),
            [&](int a, int b) { return array(a).offset < array(b).offset; });
  std::vector<WeightRange> ranges;
  for (const int weight : weights) {
    const int64_t offset = array(weight).offset * 4, bytes = array(weight).count * 4;
    if (!ranges.empty()) {
      const int64_t end = ranges.back().offset + ranges.back().bytes;
      if ((end + alignment - 1) / alignment * alignment >= offset) {
        ranges.back().bytes = std::max(end, offset + bytes) - ranges.back().offset;
        continue;
      }
    }
    ranges.push_back({offset, bytes});
  }
  return ranges;
}

WeightRange all_weights(const Net& net) {
  return {0, buffers::weight_bytes(net)};
}

int64_t total_bytes(const std::vector<WeightRange>& ranges) {
  int64_t bytes = 0;
  for (const WeightRange& range : ranges) bytes += range.bytes;
  return bytes;
}

PlanBuilder::PlanBuilder(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose)
    : inputs_(inputs), purpose_(purpose), scalar_of_tensor_(inputs.net->tensors.size(), -1) {
  if (devices() < 1) throw error("strategy '{}' on {} devices: at least 1", strategy, devices());
  if (net().batch < devices()) {
    throw error(
        "batch {} is smaller than the {} devices: every device needs at least one row, so use a "
        "batch of {} or more, or {} devices or fewer",
        net().batch, devices(), devices(), net().batch);
  }
  for (size_t i = 0; i < net().scalars.size(); ++i) {
    const Scalar& scalar = net().scalars[i];
    const Tensor& tensor = net().tensors[size_t(scalar.tensor)];
    if (element_count(tensor.shape) != 1) {
      throw error("{}: output '{}' is {}; a loss or metric reports a single number",
                  net().layers[size_t(scalar.layer)].title(), scalar.name, to_string(tensor.shape));
    }
    scalar_of_tensor_[size_t(scalar.tensor)] = static_cast<int>(i);
  }
  last_users_.assign(net().weights.size(), -1);
  for (size_t i = 0; i < net().layers.size(); ++i) {
    if (!net().layers[i].wants_backward_weights) continue;
    for (const int weight : net().layers[i].weights) {
      last_users_[size_t(weight)] = static_cast<int>(i);
    }
  }
  plan_.strategy = strategy;
  plan_.net = net().name;
  plan_.devices = devices();
  plan_.batch = net().batch;
  if (purpose == Purpose::training) plan_.batches_per_update = inputs_.batches_per_update;
}

void PlanBuilder::emit(Task task) {
  plan_.tasks.push_back(std::move(task));
}

void PlanBuilder::emit_input(int device) {
  const Rows mine = rows(device);
  const BatchLayout global = batch_layout(net().batch), local = batch_layout(mine.count());
  const int from = buffer({buffers::batch, TANDEM_HOST, BufferKind::external, global.bytes, 1, {}});
  const int to = input(device).buffer;
  const auto segment = [&](int64_t source, int64_t target, int64_t bytes) {
    return CopySegment{{from, source, bytes}, {to, target, bytes}};
  };
  const auto rows_segment = [&](int64_t source, int64_t target, int64_t row_bytes) {
    return segment(source + mine.begin * row_bytes, target, mine.count() * row_bytes);
  };
  std::vector<CopySegment> segments{
      segment(0, 0, sizeof(tandem_step)), rows_segment(global.label_offset, local.label_offset, 4),
      rows_segment(global.data_offset, local.data_offset, element_count(global.sample) * 4)};
  for (size_t i = 0; i < global.more.size(); ++i) {
    segments.push_back(rows_segment(global.more_offsets[i], local.more_offsets[i],
                                    element_count(global.more[i]) * 4));
  }
  emit_copy(fmt::format("copy input @{}", device), Stage::input, -1, {{device, StreamKind::copy}},
            std::move(segments));
}

void PlanBuilder::emit_statistics(int device, int layer, Stage stage, LayerPass pass) {
  if (statistics(device, layer, pass).buffer < 0) return;
  emit_pass(device, layer, stage, {binding(device, layer), pass, false});
}

void PlanBuilder::emit_forward(int device, int layer) {
  emit_pass(device, layer, Stage::forward, {binding(device, layer), LayerPass::forward, false});
}

void PlanBuilder::emit_backward(int device, int layer, Stage stage) {
  const Layer& l = net().layers[size_t(layer)];
  if (!l.has_backward()) return;
  const int use = binding(device, layer);
  if (l.wants_backward_weights) {
    emit_pass(device, layer, stage, {use, LayerPass::backward_weights, accumulates(device, layer)});
    add_own_gradients(device, layer, stage);
  }
  if (l.wants_backward_data) {
    emit_pass(device, layer, stage, {use, LayerPass::backward_data, false});
  }
}

// The first write of a step overwrites, so that nothing has to be cleared.
bool PlanBuilder::accumulates(int device, int layer) {
  const Layer& l = net().layers[size_t(layer)];
  size_t own = 0, written = 0;
  for (const int weight : l.weights) {
    if (net().weights[size_t(weight)].kind != TANDEM_TRAINED) continue;
    if (has_own_gradient(layer, weight)) continue;
    ++own;
    if (!written_gradients_.emplace(device, weight).second) ++written;
  }
  if (written != 0 && written != own) {
    throw error(
        "{}: in this order of its plan some of its shared weights have a gradient already "
        "and others have not",
        l.title());
  }
  return written != 0;
}

// A pass adds to all of its weights' gradients or overwrites all. Where a layer shares only some of
// its weights, backward from the last user to the first, the shared ones' gradients of all but the
// last user are made in memory of their own, and added behind the pass.
bool PlanBuilder::has_own_gradient(int layer, int weight) const {
  const auto is_first = [this, layer](int w) { return last_users_[size_t(w)] == layer; };
  const Layer& l = net().layers[size_t(layer)];
  const bool starts_any = std::any_of(l.weights.begin(), l.weights.end(), [&](int w) {
    return net().weights[size_t(w)].kind == TANDEM_TRAINED && is_first(w);
  });
  return starts_any && !is_first(weight);
}

void PlanBuilder::add_own_gradients(int device, int layer, Stage stage) {
  const Layer& l = net().layers[size_t(layer)];
  const int use = binding(device, layer);
  for (size_t i = 0; i < l.weights.size(); ++i) {
    const Region own = plan_.bindings[size_t(use)].weight_gradients[i];
    if (own.buffer < 0 || !has_own_gradient(layer, l.weights[i])) continue;
    const WeightArray& array = net().weights[size_t(l.weights[i])];
    emit_add(fmt::format("add gradient of {} to {} @{}", l.name, array.name, device), stage,
             {device, StreamKind::compute}, gradients(device, {array.offset * 4, array.count * 4}),
             {own}, When::last_batch);
  }
}

namespace {

void append(std::vector<Region>& to, const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    if (region.buffer >= 0) to.push_back(region);
  }
}

}  // namespace

void PlanBuilder::emit_pass(int device, int layer, Stage stage, const LayerWork& work) {
  const Layer& l = net().layers[size_t(layer)];
  const PlanBinding& use = plan_.bindings[size_t(work.binding)];
  Task task;
  task.label = fmt::format("{} {} @{}", to_string(work.pass), l.name, device);
  task.stage = stage;
  task.layer = layer;
  task.streams = {{device, StreamKind::compute}};
  task.work = work;
  // Any kernel may look at the step; declaring it for all costs no wait, since a device's copy
  // stream must wait for the last layer that reads the input anyway.
  append(task.reads, {use.step, use.normaliser});
  append(task.reads, use.weights);
  append(task.writes, {{use.scratch, 0, whole_buffer}});
  const bool is_statistics =
      work.pass == LayerPass::forward_statistics || work.pass == LayerPass::backward_statistics;
  const bool is_forward =
      work.pass == LayerPass::forward || work.pass == LayerPass::forward_statistics;
  append(is_statistics ? task.writes : task.reads,
         {is_forward ? use.forward_statistics : use.backward_statistics});
  if (l.has(TANDEM_LOSS) || l.has(TANDEM_METRIC)) append(task.reads, {use.row_labels});
  if (is_forward) append(task.reads, use.inputs);
  if (work.pass == LayerPass::forward) {
    append(task.writes, use.outputs);
    append(task.writes, {{use.saved, 0, whole_buffer}});
    for (size_t i = 0; i < l.weights.size(); ++i) {
      if (net().weights[size_t(l.weights[i])].kind == TANDEM_STATE &&
          purpose_ == Purpose::training) {
        append(task.writes, {use.weights[i]});
      }
    }
  } else if (!is_forward) {
    append(task.reads, use.output_gradients);
    append(task.reads, {{use.saved, 0, whole_buffer}});
    if (l.has(TANDEM_BACKWARD_READS_INPUTS)) {
      append(task.reads, use.inputs);
    } else if (l.has(TANDEM_SECOND_INPUT_IS_LABEL) && use.inputs.size() > 1) {
      append(task.reads, {use.inputs[1]});
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
  const WeightRange all = all_weights(net());
  Task task;
  task.label = label;
  task.stage = stage;
  task.streams = {{device, stream}};
  for (const WeightRange& range : weight_ranges(net(), arrays)) {
    task.reads.push_back(gradients(device, range));
    task.reads.push_back(weights(device, range));
  }
  task.writes = norms(device, arrays);
  task.work = NormWork{arrays,
                       weights(device, all),
                       gradients(device, all),
                       {task.writes.front().buffer, 0, whole_buffer}};
  task.when = When::last_batch;
  emit(std::move(task));
}

void PlanBuilder::emit_merge(Stage stage, int layer, LayerPass pass, StreamKind stream) {
  MergeWork work;
  work.binding = binding(0, layer);
  work.pass = pass;
  work.target = statistics(0, layer, pass);
  for (int device = 1; device < devices(); ++device) {
    work.sources.push_back(received_statistics(device, layer, pass));
  }
  Task task;
  task.label = fmt::format("merge {} {} @0", to_string(pass), net().layers[size_t(layer)].name);
  task.stage = stage;
  task.layer = layer;
  task.streams = {{0, stream}};
  task.reads = work.sources;
  task.writes = {work.target};
  task.work = std::move(work);
  emit(std::move(task));
}

void PlanBuilder::emit_update(const std::string& label, Stage stage, int device,
                              const std::vector<int>& arrays, StreamKind stream,
                              const UpdatePart* part) {
  const WeightRange all = all_weights(net());
  UpdateWork work;
  work.weights = arrays;
  work.weights_buffer = weights(device, all);
  work.gradients_buffer = gradients(device, all);
  work.step = step(device);
  work.skip = skip(device);
  Task task;
  task.label = label;
  task.stage = stage;
  task.streams = {{device, stream}};
  task.reads = {work.step, work.skip};
  const std::vector<WeightRange> ranges =
      part == nullptr ? weight_ranges(net(), arrays) : std::vector{part->range};
  for (const WeightRange& range : ranges) {
    task.reads.push_back(gradients(device, range));
    task.writes.push_back(weights(device, range));
    for (int i = 0; i < inputs_.solver_states; ++i) {
      task.writes.push_back(part == nullptr ? state(device, i, range) : state_of(device, i, *part));
    }
  }
  work.state_buffer = {state(device, 0, all).buffer, 0, whole_buffer};
  if (part != nullptr) {
    work.is_part = true;
    work.begin = part->range.offset;
    work.bytes = part->range.bytes;
    work.state_begin = part->state_begin;
    work.state_stride = part->state_stride;
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

void PlanBuilder::emit_check(const std::string& label, StreamId stream, int scalar) {
  const CheckWork work{metric(stream.device, scalar), skip(stream.device)};
  Task task;
  task.label = label;
  task.stage = Stage::report;
  task.streams = {stream};
  task.reads = {work.values};
  task.writes = {work.skip};
  task.work = work;
  emit(std::move(task));
}

}  // namespace tandem
