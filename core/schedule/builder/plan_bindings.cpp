// The uses of layers: a binding's regions, over all or some of a shard's rows, channels and inputs.
#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

#include "core/schedule/builder/plan_regions.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {

void PlanRegions::describe_tensors(PlanBinding& use, int shard) {
  const Layer& l = net().layer(use.layer);
  const bool trains = purpose_ == Purpose::training;
  for (size_t i = 0; i < l.inputs.size(); ++i) {
    const bool wanted = trains && l.wants_backward_data && l.may_take_gradient(i) &&
                        net().tensor(l.inputs[i]).has_gradient;
    use.inputs.push_back(tensor(shard, l.inputs[i]));
    use.input_gradients.push_back(wanted ? tensor_gradient(shard, l.inputs[i]) : Region{});
  }
  if (l.addend >= 0) use.addend = tensor(shard, l.addend);
  for (size_t i = 0; i < l.outputs.size(); ++i) {
    use.outputs.push_back(tensor(shard, l.outputs[i]));
    use.output_gradients.push_back(trains && l.has_backward() ? output_gradient(shard, use.layer, i)
                                                              : Region{});
  }
  for (const int weight : l.weights) {
    const WeightArray& array = net().weight(weight);
    // The gradient of a frozen array is made all the same: a layer computes its weights' gradients
    // together, and the update leaves out what is not trained.
    const bool wanted = trains && l.wants_backward_weights && array.kind == TANDEM_TRAINED;
    use.weights.push_back(weights(use.device, buffers::bytes_of(array)));
    use.weight_gradients.push_back(wanted ? weight_gradient(use.device, use.layer, weight)
                                          : Region{});
  }
}

PlanBinding PlanRegions::describe(int shard, int layer) {
  const Layer& l = net().layer(layer);
  const bool goes_backward = purpose_ == Purpose::training && l.has_backward();
  PlanBinding use;
  use.layer = layer;
  use.device = device_of(shard);
  use.rows = rows(shard);
  use.activation = l.activation;
  use.activation_before = l.activation_before;
  describe_tensors(use, shard);
  use.step = step(shard);
  if (l.has(TANDEM_LOSS) || l.has(TANDEM_METRIC)) {
    constexpr int64_t samples = offsetof(tandem_step, samples);
    use.normaliser = {use.step.buffer, samples, sizeof(float)};
    const int64_t rows_here = rows(shard).count();
    use.row_labels = {input(shard).buffer, batch_layout(rows_here).label_offset,
                      rows_here * buffers::float_bytes};
  }
  use.forward_statistics = statistics(use.device, layer, LayerPass::forward_statistics);
  if (goes_backward) {
    use.backward_statistics = statistics(use.device, layer, LayerPass::backward_statistics);
  }
  const KernelBuffers of_kernel = kernel_buffers(shard, layer, goes_backward);
  use.saved = of_kernel.saved;
  use.scratch = of_kernel.forward_scratch;
  use.backward_scratch = of_kernel.backward_scratch;
  return use;
}

PlanRegions::KernelBuffers PlanRegions::kernel_buffers(int shard, int layer, bool goes_backward) {
  std::vector<KernelBuffers>& list = shards_[size_t(shard)].kernel_buffers;
  if (list.empty()) list.resize(net().layers.size());
  KernelBuffers& known = list[size_t(layer)];
  if (known.saved >= 0) return known;
  const std::string& name = net().layer(layer).name;
  // The kernel says how many bytes, also where nothing is read backward.
  known.saved = buffer(at(shard, name + " saved", 0));
  // One for each pass, so that a large one can share memory with what is not in use yet.
  const auto scratch = [&](const char* pass) {
    return transient(device_of(shard), fmt::format("{} {} scratch", name, pass), 0).buffer;
  };
  known.forward_scratch = scratch("forward");
  known.backward_scratch = goes_backward ? scratch("backward") : known.forward_scratch;
  return known;
}

int PlanRegions::add_binding(PlanBinding use) {
  plan_.bindings.push_back(std::move(use));
  return static_cast<int>(plan_.bindings.size()) - 1;
}

int PlanRegions::binding(int shard, int layer) {
  std::vector<int>& bindings = shards_[size_t(shard)].bindings;
  if (bindings.empty()) bindings.assign(net().layers.size(), -1);
  int& known = bindings[size_t(layer)];
  if (known < 0) known = add_binding(describe(shard, layer));
  return known;
}

void PlanRegions::slice_outputs(PlanBinding& use, Interval channels) const {
  const Layer& layer = net().layer(use.layer);
  use.slice = channels;
  use.whole_outputs = true;
  use.activation = TANDEM_ACTIVATION_NONE;  // further slices of the inputs may be added
  use.activation_before = TANDEM_ACTIVATION_NONE;
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    const Interval all{0, net().weight(layer.weights[i]).shape.n};
    use.weights[i] = part_of(use.weights[i], all, channels);
    use.weight_gradients[i] = part_of(use.weight_gradients[i], all, channels);
  }
}

void PlanRegions::slice_rows(PlanBinding& use, int shard, Interval some) const {
  use.rows = some;
  for (auto* regions : {&use.inputs, &use.outputs, &use.input_gradients, &use.output_gradients}) {
    for (Region& region : *regions) region = part_of(region, rows(shard), some);
  }
  use.addend = part_of(use.addend, rows(shard), some);
}

}  // namespace tandem
