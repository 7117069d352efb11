#include "core/schedule/cost/cost_table.h"

#include <algorithm>
#include <string>
#include <variant>

#include "core/base/error.h"
#include "core/base/overloaded.h"
#include "core/base/shape.h"

namespace tandem {

namespace {

// Flops and bytes of a pass by its type.
std::pair<double, double> pass_work(const tandem_layer_cost& cost, LayerPass pass) {
  switch (pass) {
    case LayerPass::forward:
      return {cost.forward_flops, cost.forward_bytes};
    case LayerPass::backward_data:
      return {cost.backward_data_flops, cost.backward_data_bytes};
    // They read what the pass reads: half of its traffic, or two thirds with the output's gradient.
    case LayerPass::forward_statistics:
      return {cost.forward_flops / 2, cost.forward_bytes / 2};
    case LayerPass::backward_statistics:
      return {cost.backward_data_flops / 2, cost.backward_data_bytes * 2 / 3};
    default:
      return {cost.backward_weights_flops, cost.backward_weights_bytes};
  }
}

int64_t sum_of(const Plan& plan, const std::vector<Region>& regions) {
  int64_t bytes = 0;
  for (const Region& region : regions) bytes += plan.bytes(region);
  return bytes;
}

// Of a copy by its first segment: between a device and the host, or its extended memory.
std::string copy_key(const Plan& plan, const CopyWork& copy) {
  if (copy.segments.empty()) return "input";
  const Buffer& source = plan.buffers[size_t(copy.segments.front().source.buffer)];
  const Buffer& target = plan.buffers[size_t(copy.segments.front().target.buffer)];
  if (source.is_extended || target.is_extended) return "extended";
  if (rearranges(plan, copy)) return "rearrange";
  return source.device == TANDEM_HOST ? "input" : target.device == TANDEM_HOST ? "results" : "";
}

// What the pass of a binding does along.
int32_t activation_of(const PlanBinding& use, LayerPass pass) {
  return pass == LayerPass::forward ? use.activation : TANDEM_ACTIVATION_NONE;
}

}  // namespace

// What was measured in one precision is not taken for another.
std::string pass_key(const Net& net, int index, LayerPass pass, int32_t activation) {
  const Layer& layer = net.layers[size_t(index)];
  std::string key = layer.name + " " + to_string(pass);
  if (activation != TANDEM_ACTIVATION_NONE) key += fmt::format("+{}", activation_name(activation));
  const std::vector<int>& tensors = layer.outputs.empty() ? layer.inputs : layer.outputs;
  const int32_t dtype =
      tensors.empty() ? TANDEM_FLOAT32 : net.tensors[size_t(tensors.front())].dtype;
  if (dtype != TANDEM_FLOAT32) return key + " " + dtype_name(dtype);
  return layer.allows_tf32 ? key + " " + dtype_name(tf32_precision) : key;
}

bool rearranges(const Plan& plan, const CopyWork& copy) {
  const auto device = [&](const Region& region) {
    const Buffer& buffer = plan.buffers[size_t(region.buffer)];
    return buffer.is_extended ? TANDEM_HOST : buffer.device;
  };
  return copy.segments.size() > 1 &&
         std::all_of(copy.segments.begin(), copy.segments.end(), [&](const CopySegment& segment) {
           return device(segment.source) >= 0 && device(segment.source) == device(segment.target);
         });
}

std::string cost_key(const Net& net, const Plan& plan, const Task& task) {
  return std::visit(overloaded{
                        [&](const LayerWork& work) {
                          const PlanBinding& use = plan.bindings[size_t(work.binding)];
                          return pass_key(net, use.layer, work.pass, activation_of(use, work.pass));
                        },
                        [&](const CopyWork& work) { return copy_key(plan, work); },
                        [](const AddWork&) { return std::string("add"); },
                        [](const MergeWork&) { return std::string("merge"); },
                        [](const NormWork&) { return std::string("norms"); },
                        [](const UpdateWork&) { return std::string("update"); },
                        [](const CheckWork&) { return std::string("check"); },
                        [](const ConvertWork&) { return std::string("convert"); },
                    },
                    task.work);
}

int64_t cost_bytes(const Plan& plan, const Task& task) {
  const int64_t written = sum_of(plan, task.writes);
  return std::visit(
      overloaded{
          [](const LayerWork&) { return int64_t{0}; },
          [&](const CopyWork& work) { return rearranges(plan, work) ? 2 * written : written; },
          // What these change is read before it is written.
          [&](const OneOf<AddWork, MergeWork, NormWork, UpdateWork, CheckWork> auto&) {
            return sum_of(plan, task.reads) + 2 * written;
          },
          [&](const ConvertWork&) { return sum_of(plan, task.reads) + written; },
      },
      task.work);
}

const MeasuredCost* CostTable::find_pass(const Net& net, int layer, LayerPass pass,
                                         int32_t activation) const {
  const MeasuredCost* cost = find(pass_key(net, layer, pass, activation));
  if (cost != nullptr || pass != LayerPass::forward) return cost;
  const int32_t other = activation == TANDEM_ACTIVATION_NONE ? int32_t{TANDEM_ACTIVATION_RELU}
                                                             : int32_t{TANDEM_ACTIVATION_NONE};
  return find(pass_key(net, layer, pass, other));
}

const MeasuredCost* CostTable::find(const std::string& key) const {
  const auto found = measured_.find(key);
  return found == measured_.end() ? nullptr : &found->second;
}

double CostTable::pass_seconds(const Net& net, int layer, LayerPass pass, int64_t rows) const {
  const Layer& l = net.layers[size_t(layer)];
  const bool is_forward = pass == LayerPass::forward;
  if (is_forward && l.fused_into >= 0) return 0;
  return use_seconds(net, layer, pass, rows,
                     is_forward ? l.activation : int32_t{TANDEM_ACTIVATION_NONE});
}

double CostTable::use_seconds(const Net& net, int layer, LayerPass pass, int64_t rows,
                              int32_t activation) const {
  if (const MeasuredCost* cost = find_pass(net, layer, pass, activation)) {
    if (cost->rows <= 0) return cost->seconds;
    return cost->seconds * static_cast<double>(rows) / static_cast<double>(cost->rows);
  }
  if (pass == LayerPass::backward) {
    const Layer& l = net.layers[size_t(layer)];
    return (l.wants_backward_data ? pass_seconds(net, layer, LayerPass::backward_data, rows) : 0) +
           (l.wants_backward_weights ? pass_seconds(net, layer, LayerPass::backward_weights, rows)
                                     : 0);
  }
  const auto [flops, bytes] = pass_work(net.cost(layer, rows), pass);
  // Types say the bytes of float32 tensors.
  const double width = static_cast<double>(dtype_bytes(net.layers[size_t(layer)].dtype)) /
                       static_cast<double>(dtype_bytes(TANDEM_FLOAT32));
  return std::max(flops / roofline_.flops, bytes * width / roofline_.bandwidth);
}

double CostTable::statistics_seconds(const Net& net, int layer, LayerPass pass,
                                     int64_t rows) const {
  const Layer& l = net.layers[size_t(layer)];
  if (!l.has(TANDEM_BATCH_STATISTICS)) return 0;
  const tandem_layer_statistics floats = net.statistics(layer);
  const bool is_forward = pass == LayerPass::forward_statistics;
  if ((is_forward ? floats.forward : floats.backward) == 0) return 0;
  return is_forward || l.has_backward() ? pass_seconds(net, layer, pass, rows) : 0;
}

double CostTable::moving_seconds(const std::string& key, int64_t bytes) const {
  const MeasuredCost* cost = find(key);
  if (cost == nullptr) return static_cast<double>(bytes) / roofline_.bandwidth;
  if (cost->bytes <= 0) return cost->seconds;
  return cost->seconds * static_cast<double>(bytes) / static_cast<double>(cost->bytes);
}

double CostTable::seconds(const Net& net, const Plan& plan, const Task& task) const {
  if (const auto* work = std::get_if<LayerWork>(&task.work)) {
    const PlanBinding& use = plan.bindings[size_t(work->binding)];
    return slice_fraction(net, use) * use_seconds(net, use.layer, work->pass, use.rows.count(),
                                                  activation_of(use, work->pass));
  }
  const std::string key = cost_key(net, plan, task);
  return key.empty() ? 0 : moving_seconds(key, cost_bytes(plan, task));
}

bool CostTable::is_measured(const Net& net, const Plan& plan, const Task& task) const {
  const std::string key = cost_key(net, plan, task);
  if (key.empty() || find(key) != nullptr) return true;
  const auto* work = std::get_if<LayerWork>(&task.work);
  if (work == nullptr) return false;
  const PlanBinding& use = plan.bindings[size_t(work->binding)];
  const int layer = use.layer;
  if (work->pass != LayerPass::backward) {
    return find_pass(net, layer, work->pass, activation_of(use, work->pass)) != nullptr;
  }
  const Layer& l = net.layers[size_t(layer)];
  const auto has = [&](LayerPass half) {
    return find(pass_key(net, layer, half, TANDEM_ACTIVATION_NONE)) != nullptr;
  };
  return (!l.wants_backward_data || has(LayerPass::backward_data)) &&
         (!l.wants_backward_weights || has(LayerPass::backward_weights));
}

}  // namespace tandem
