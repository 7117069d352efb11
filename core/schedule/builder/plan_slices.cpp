// The part of the plan builder for layers divided by their output channels.
#include "core/schedule/builder/plan_builder.h"

namespace tandem {

namespace {

Region part_of(const Region& whole, int64_t begin, int64_t end, int64_t of) {
  if (whole.buffer < 0) return whole;
  const int64_t one = whole.bytes / of;
  return {whole.buffer, whole.offset + begin * one, (end - begin) * one};
}

}  // namespace

void PlanBuilder::slice_outputs(PlanBinding& use, int64_t begin, int64_t end) const {
  const Layer& layer = net().layers[size_t(use.layer)];
  use.slice_begin = begin;
  use.slice_end = end;
  use.whole_outputs = true;
  use.activation = TANDEM_ACTIVATION_NONE;  // further slices of the inputs may be added
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    const int64_t channels = net().weights[size_t(layer.weights[i])].shape.n;
    use.weights[i] = part_of(use.weights[i], begin, end, channels);
    use.weight_gradients[i] = part_of(use.weight_gradients[i], begin, end, channels);
  }
}

void PlanBuilder::slice_rows(PlanBinding& use, int place, Rows some) const {
  const Rows all = rows(place);
  use.row_begin = some.begin;
  use.row_end = some.end;
  for (auto* regions : {&use.inputs, &use.outputs, &use.input_gradients, &use.output_gradients}) {
    for (Region& region : *regions) {
      region = part_of(region, some.begin - all.begin, some.end - all.begin, all.count());
    }
  }
}

std::vector<WeightPart> PlanBuilder::parts_of(int layer, int64_t begin, int64_t end) const {
  std::vector<WeightPart> parts;
  for (const int weight : net().layers[size_t(layer)].weights) {
    const WeightArray& array = net().weights[size_t(weight)];
    const int64_t one = array.count / array.shape.n;
    if (array.trained()) parts.push_back({weight, begin * one, end * one});
  }
  return parts;
}

}  // namespace tandem
