// The part of the plan builder for layers divided by their output channels.
#include "core/schedule/builder/plan_builder.h"

namespace tandem {

namespace {

// Of a region of `count` equal parts.
Region part_of(const Region& whole, Interval parts, int64_t count) {
  if (whole.buffer < 0) return whole;
  const int64_t one = whole.bytes / count;
  return {whole.buffer, whole.offset + parts.begin * one, parts.count() * one};
}

}  // namespace

void PlanBuilder::slice_outputs(PlanBinding& use, Interval channels) const {
  const Layer& layer = net().layers[size_t(use.layer)];
  use.slice = channels;
  use.whole_outputs = true;
  use.activation = TANDEM_ACTIVATION_NONE;  // further slices of the inputs may be added
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    const int64_t all = net().weights[size_t(layer.weights[i])].shape.n;
    use.weights[i] = part_of(use.weights[i], channels, all);
    use.weight_gradients[i] = part_of(use.weight_gradients[i], channels, all);
  }
}

void PlanBuilder::slice_rows(PlanBinding& use, int shard, Interval some) const {
  const Interval all = rows(shard);
  const Interval within{some.begin - all.begin, some.end - all.begin};
  use.rows = some;
  for (auto* regions : {&use.inputs, &use.outputs, &use.input_gradients, &use.output_gradients}) {
    for (Region& region : *regions) {
      region = part_of(region, within, all.count());
    }
  }
}

std::vector<WeightSlice> PlanBuilder::slices_of(int layer, Interval channels) const {
  std::vector<WeightSlice> slices;
  for (const int weight : net().layers[size_t(layer)].weights) {
    const WeightArray& array = net().weights[size_t(weight)];
    const int64_t one = array.count / array.shape.n;
    if (array.trained()) {
      slices.push_back({weight, {channels.begin * one, channels.end * one}});
    }
  }
  return slices;
}

}  // namespace tandem
