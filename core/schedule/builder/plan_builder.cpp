#include "core/schedule/builder/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/packing.h"

namespace tandem {

std::vector<Interval> merged(std::vector<Interval> bytes) {
  constexpr int64_t alignment = 64;
  std::sort(bytes.begin(), bytes.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> result;
  for (const Interval& range : bytes) {
    const bool joins = !result.empty() &&
                       (result.back().end + alignment - 1) / alignment * alignment >= range.begin;
    if (joins) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

std::vector<Interval> weight_ranges(const Net& net, const std::vector<int>& weights) {
  std::vector<Interval> ranges;
  for (const int weight : weights) ranges.push_back(buffers::bytes_of(net.weights[size_t(weight)]));
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

namespace {

std::vector<Interval> shares(const StrategyInputs& inputs, const std::string& strategy) {
  const int64_t batch = inputs.net->batch;
  const int devices = inputs.devices;
  if (devices < 1) throw error("strategy '{}' on {} devices: at least 1", strategy, devices);
  if (batch < devices) {
    throw error(
        "batch {} is smaller than the {} devices: every device needs at least one row, so use a "
        "batch of {} or more, or {} devices or fewer",
        batch, devices, devices, batch);
  }
  std::vector<Interval> rows;
  for (int device = 0; device < devices; ++device) rows.push_back(share(batch, devices, device));
  return rows;
}

}  // namespace

PlanBuilder::PlanBuilder(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose)
    : PlanBuilder(inputs, strategy, purpose, shares(inputs, strategy)) {}

PlanBuilder::PlanBuilder(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose,
                         const std::vector<Interval>& rows)
    : inputs_(inputs), purpose_(purpose), scalar_of_tensor_(inputs.net->tensors.size(), -1) {
  for (size_t device = 0; device < rows.size(); ++device) {
    shards_.push_back({static_cast<int>(device), rows[device], ""});
  }
  find_scalars();
  find_last_users();
  plan_.strategy = strategy;
  plan_.options = inputs_.options;
  plan_.net = net().name;
  plan_.devices = devices();
  plan_.batch = net().batch;
  if (purpose == Purpose::training) plan_.micro_batches_per_step = inputs_.micro_batches_per_step;
}

void PlanBuilder::find_scalars() {
  for (size_t i = 0; i < net().scalars.size(); ++i) {
    const Scalar& scalar = net().scalars[i];
    const Tensor& tensor = net().tensors[size_t(scalar.tensor)];
    if (element_count(tensor.shape) != 1) {
      throw error("{}: output '{}' is {}; a loss or metric reports a single number",
                  net().layers[size_t(scalar.layer)].title(), scalar.name, to_string(tensor.shape));
    }
    scalar_of_tensor_[size_t(scalar.tensor)] = static_cast<int>(i);
  }
}

void PlanBuilder::find_last_users() {
  last_users_.assign(net().weights.size(), -1);
  for (size_t i = 0; i < net().layers.size(); ++i) {
    if (!net().layers[i].wants_backward_weights) continue;
    for (const int weight : net().layers[i].weights) {
      last_users_[size_t(weight)] = static_cast<int>(i);
    }
  }
}

Plan PlanBuilder::take() {
  pack_buffers(plan_, {weight_arrays_.begin(), weight_arrays_.end()});
  return std::move(plan_);
}

int PlanBuilder::add_shard(int device, Interval rows, const std::string& name) {
  shards_.push_back({device, rows, name});
  return static_cast<int>(shards_.size()) - 1;
}

void PlanBuilder::emit(Task task) {
  pending_.follow(net(), plan_, task);
  plan_.tasks.push_back(std::move(task));
}

std::string PlanBuilder::label(LayerPass pass, int layer, int shard) const {
  const std::string& name = shards_[size_t(shard)].name;
  return fmt::format("{} {} @{}{}", to_string(pass), net().layers[size_t(layer)].name,
                     device_of(shard), name.empty() ? "" : " " + name);
}

void PlanBuilder::emit_statistics(int shard, int layer, Stage stage, LayerPass pass) {
  if (statistics(device_of(shard), layer, pass).buffer < 0) return;
  emit_pass(label(pass, layer, shard), stage, {binding(shard, layer), pass, false});
}

void PlanBuilder::emit_forward(int shard, int layer) {
  if (net().makes_views(layer)) return;
  const Layer& l = net().layers[size_t(layer)];
  if (l.fused_into >= 0 && !pending_.has(plan_, tensor(shard, l.inputs[0]))) return;
  emit_pass(label(LayerPass::forward, layer, shard), Stage::forward,
            {binding(shard, layer), LayerPass::forward, false});
}

void PlanBuilder::emit_backward(int shard, int layer, Stage stage) {
  const Layer& l = net().layers[size_t(layer)];
  if (!l.has_backward()) return;
  if (l.wants_backward_weights) emit_backward_weights(shard, layer, stage);
  if (l.wants_backward_data) {
    emit_pass(label(LayerPass::backward_data, layer, shard), stage,
              {binding(shard, layer), LayerPass::backward_data, false});
  }
}

void PlanBuilder::emit_backward_weights(int shard, int layer, Stage stage) {
  const int use = binding(shard, layer), device = device_of(shard);
  emit_pass(label(LayerPass::backward_weights, layer, shard), stage,
            {use, LayerPass::backward_weights, accumulates(device, layer)});
  add_own_gradients(shard, layer, stage);
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

void PlanBuilder::add_own_gradients(int shard, int layer, Stage stage) {
  const Layer& l = net().layers[size_t(layer)];
  const int use = binding(shard, layer), device = device_of(shard);
  for (size_t i = 0; i < l.weights.size(); ++i) {
    const Region own = plan_.bindings[size_t(use)].weight_gradients[i];
    if (own.buffer < 0 || !has_own_gradient(layer, l.weights[i])) continue;
    const WeightArray& array = net().weights[size_t(l.weights[i])];
    emit_add(fmt::format("add gradient of {} to {} @{}", l.name, array.name, device), stage,
             {device, StreamKind::compute}, gradients(device, buffers::bytes_of(array)), {own},
             When::last_micro_batch);
  }
}

namespace {

void append(std::vector<Region>& to, const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    if (region.buffer >= 0) to.push_back(region);
  }
}

}  // namespace

void PlanBuilder::emit_pass(const std::string& label, Stage stage, const LayerWork& work) {
  const PlanBinding& use = plan_.bindings[size_t(work.binding)];
  const Layer& l = net().layers[size_t(use.layer)];
  Task task;
  task.label = label;
  task.stage = stage;
  task.layer = use.layer;
  task.streams = {{use.device, StreamKind::compute}};
  task.work = work;
  // Any kernel may look at the step; declaring it for all costs no wait, since a device's copy
  // stream must wait for the last layer that reads the input anyway.
  append(task.reads, {use.step, use.normaliser});
  append(task.reads, use.weights);
  const bool is_statistics =
      work.pass == LayerPass::forward_statistics || work.pass == LayerPass::backward_statistics;
  const bool is_forward =
      work.pass == LayerPass::forward || work.pass == LayerPass::forward_statistics;
  append(task.writes, {{is_forward ? use.scratch : use.backward_scratch, 0, whole_buffer}});
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

}  // namespace tandem
