#include "core/schedule/cost/cost_table.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/numbers/shape.h"
#include "core/base/overloaded.h"

namespace tandem {
namespace {

// By a layer's type, for tensors in float32.
PassWork work_of(const tandem_layer_cost& cost, LayerPass pass) {
  switch (pass) {
    case LayerPass::forward:
      return {cost.forward_flops, cost.forward_bytes};
    case LayerPass::backward_data:
      return {cost.backward_data_flops, cost.backward_data_bytes};
    // These read what the pass reads, which is half of its traffic, or two thirds of it with the
    // output's gradient.
    case LayerPass::forward_statistics:
      return {cost.forward_flops / 2, cost.forward_bytes / 2};
    case LayerPass::backward_statistics:
      return {cost.backward_data_flops / 2, cost.backward_data_bytes * 2 / 3};
    default:
      return {cost.backward_weights_flops, cost.backward_weights_bytes};
  }
}

// Of a copy, by its first segment: between a device and the host, or its extended memory.
std::string copy_key(const Plan& plan, const CopyWork& copy) {
  if (copy.segments.empty()) return "input";
  const Buffer& source = plan.buffer(copy.segments.front().source.buffer);
  const Buffer& target = plan.buffer(copy.segments.front().target.buffer);
  if (source.is_extended || target.is_extended) return "extended";
  if (rearranges(plan, copy)) return "rearrange";
  return source.device == TANDEM_HOST ? "input" : target.device == TANDEM_HOST ? "results" : "";
}

// What is fused into the pass of a binding.
int32_t activation_of(const PlanBinding& use, LayerPass pass) {
  return pass == LayerPass::forward ? use.activation : TANDEM_ACTIVATION_NONE;
}

// The layer whose pass a key names; "": other work.
std::string layer_of(const std::string& key) {
  // All passes are named so (to_string(LayerPass)).
  const size_t end = std::min(key.rfind(" forward"), key.rfind(" backward"));
  return end == std::string::npos ? "" : key.substr(0, end);
}

}  // namespace

PassWork work_of(LayerWorks& layers, int layer, LayerPass pass, int64_t rows) {
  const Layer& l = layers.net().layer(layer);
  PassWork work;
  if (pass == LayerPass::backward) {
    if (l.wants_backward_data) work = work_of(layers, layer, LayerPass::backward_data, rows);
    if (!l.wants_backward_weights) return work;
    const PassWork more = work_of(layers, layer, LayerPass::backward_weights, rows);
    return {work.flops + more.flops, work.bytes + more.bytes};
  }
  work = work_of(layers.of(layer, rows), pass);
  if (pass == LayerPass::forward && l.addend >= 0) {
    Shape read = layers.net().tensor(l.addend).shape;
    read.n = rows;
    work.bytes += static_cast<double>(element_count(read) * dtype_bytes(TANDEM_FLOAT32));
  }
  work.bytes *=
      static_cast<double>(dtype_bytes(l.dtype)) / static_cast<double>(dtype_bytes(TANDEM_FLOAT32));
  return work;
}

// A cost measured in one precision is not used for another.
std::string pass_key(const Net& net, int index, LayerPass pass, int32_t activation) {
  const Layer& layer = net.layer(index);
  std::string key = layer.name + " " + to_string(pass);
  if (pass == LayerPass::forward && layer.addend >= 0) key += "+sum";
  if (activation != TANDEM_ACTIVATION_NONE) key += fmt::format("+{}", activation_name(activation));
  const std::vector<int>& tensors = layer.outputs.empty() ? layer.inputs : layer.outputs;
  const int32_t dtype = tensors.empty() ? TANDEM_FLOAT32 : net.tensor(tensors.front()).dtype;
  if (dtype != TANDEM_FLOAT32) return key + " " + dtype_name(dtype);
  return layer.allows_tf32 ? key + " " + dtype_name(tf32_precision) : key;
}

bool rearranges(const Plan& plan, const CopyWork& copy) {
  const auto device = [&](const Region& region) {
    const Buffer& buffer = plan.buffer(region.buffer);
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
                          const PlanBinding& use = plan.binding(work.binding);
                          return pass_key(net, use.layer, work.pass, activation_of(use, work.pass));
                        },
                        [&](const CopyWork& work) { return copy_key(plan, work); },
                        [](const AddWork&) { return std::string("add"); },
                        [](const MergeWork&) { return std::string("merge"); },
                        [](const NormWork&) { return std::string("norms"); },
                        [](const UpdateWork&) { return std::string("update"); },
                        [](const CheckWork&) { return std::string("check"); },
                        [](const ConvertWork&) { return std::string("convert"); },
                        [](const RankMessage&) { return std::string(); },
                    },
                    task.work);
}

int64_t cost_bytes(const Plan& plan, const Task& task) {
  const int64_t written = plan.bytes(task.writes);
  return std::visit(
      overloaded{
          [](const LayerWork&) { return int64_t{0}; },
          [&](const CopyWork& work) { return rearranges(plan, work) ? 2 * written : written; },
          // What these change is read before it is written.
          [&](const OneOf<AddWork, MergeWork, NormWork, UpdateWork, CheckWork> auto&) {
            return plan.bytes(task.reads) + 2 * written;
          },
          [&](const OneOf<ConvertWork, SendWork, ReceiveWork> auto&) {
            return plan.bytes(task.reads) + written;
          },
      },
      task.work);
}

const MeasuredCost* CostTable::find_pass(const Net& net, int layer, LayerPass pass,
                                         int32_t activation) const {
  if (measured_.empty()) return nullptr;  // without the keys of a plan's many tasks
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

std::set<std::string> CostTable::layers() const {
  std::set<std::string> names;
  for (const auto& [key, cost] : measured_) names.insert(layer_of(key));
  names.erase("");
  return names;
}

const std::string* CostTable::extents(const std::string& layer) const {
  const auto found = extents_.find(layer);
  return found == extents_.end() ? nullptr : &found->second;
}

void CostTable::forget(const std::string& layer) {
  std::erase_if(measured_, [&](const auto& one) { return layer_of(one.first) == layer; });
  extents_.erase(layer);
}

const tandem_layer_cost& LayerWorks::of(int layer, int64_t rows) {
  const auto key = rows * static_cast<int64_t>(net_.layers.size()) + layer;
  const auto found = known_.find(key);
  return found != known_.end() ? found->second
                               : known_.emplace(key, net_.cost(layer, rows)).first->second;
}

double CostTable::pass_seconds(const Net& net, int layer, LayerPass pass, int64_t rows) const {
  LayerWorks layers(net);
  return pass_seconds(layers, layer, pass, rows);
}

double CostTable::pass_seconds(LayerWorks& layers, int layer, LayerPass pass, int64_t rows) const {
  const Layer& l = layers.net().layer(layer);
  const bool is_forward = pass == LayerPass::forward;
  if (is_forward ? l.fused_into >= 0 : l.gradient_fused_into >= 0) return 0;
  if (!is_forward && layers.net().makes_gradient_views(layer)) return 0;
  return use_seconds(layers, layer, pass, rows,
                     is_forward ? l.activation : int32_t{TANDEM_ACTIVATION_NONE});
}

double CostTable::use_seconds(LayerWorks& layers, int layer, LayerPass pass, int64_t rows,
                              int32_t activation) const {
  const Net& net = layers.net();
  if (const MeasuredCost* cost = find_pass(net, layer, pass, activation)) {
    if (cost->rows <= 0) return cost->seconds;
    return cost->seconds * static_cast<double>(rows) / cost->rows;
  }
  const Layer& l = net.layer(layer);
  if (pass == LayerPass::backward) {
    const auto half = [&](bool is_wanted, LayerPass of) {
      return is_wanted ? pass_seconds(layers, layer, of, rows) : 0;
    };
    return half(l.wants_backward_data, LayerPass::backward_data) +
           half(l.wants_backward_weights, LayerPass::backward_weights);
  }
  const PassWork work = work_of(layers, layer, pass, rows);
  return std::max(work.flops / roofline_.flops, work.bytes / roofline_.bandwidth);
}

double CostTable::statistics_seconds(const Net& net, int layer, LayerPass pass,
                                     int64_t rows) const {
  const Layer& l = net.layer(layer);
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
  LayerWorks layers(net);
  return seconds(layers, plan, task);
}

double CostTable::seconds(LayerWorks& layers, const Plan& plan, const Task& task) const {
  if (const auto* work = std::get_if<LayerWork>(&task.work)) {
    const PlanBinding& use = plan.binding(work->binding);
    return slice_fraction(layers.net(), use) * use_seconds(layers, use.layer, work->pass,
                                                           use.rows.count(),
                                                           activation_of(use, work->pass));
  }
  const std::string key = cost_key(layers.net(), plan, task);
  return key.empty() ? 0 : moving_seconds(key, cost_bytes(plan, task));
}

bool CostTable::is_measured(const Net& net, const Plan& plan, const Task& task) const {
  const std::string key = cost_key(net, plan, task);
  if (key.empty() || find(key) != nullptr) return true;
  const auto* work = std::get_if<LayerWork>(&task.work);
  if (work == nullptr) return false;
  const PlanBinding& use = plan.binding(work->binding);
  const int layer = use.layer;
  if (work->pass != LayerPass::backward) {
    return find_pass(net, layer, work->pass, activation_of(use, work->pass)) != nullptr;
  }
  const Layer& l = net.layer(layer);
  const auto has = [&](LayerPass half) {
    return find(pass_key(net, layer, half, TANDEM_ACTIVATION_NONE)) != nullptr;
  };
  return (!l.wants_backward_data || has(LayerPass::backward_data)) &&
         (!l.wants_backward_weights || has(LayerPass::backward_weights));
}

}  // namespace tandem
