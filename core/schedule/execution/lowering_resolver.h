// The addresses of a plan's regions in one micro-batch, for Lowering alone.
#pragma once

#include <memory>
#include <vector>

#include "core/schedule/execution/lowering.h"
#include "core/schedule/kernels/layer_pointers.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {

struct Lowering::Resolver {
  const Lowering& lowering;
  int64_t micro_batch;
  const std::vector<void*>& externals;

  std::byte* operator()(const Region& region) const {
    return lowering.address(region, micro_batch, externals);
  }
  template <class T>
  T* as(const Region& region) const {
    return reinterpret_cast<T*>((*this)(region));
  }
  template <class T>
  std::vector<T*> all(const std::vector<Region>& regions) const {
    std::vector<T*> result;
    for (const Region& region : regions) result.push_back(as<T>(region));
    return result;
  }
  // `count` entries: kernels index them without checks. nullptr where the plan leaves a
  // region out.
  template <class Pointer>
  std::vector<Pointer> all(const std::vector<Region>& regions, size_t count) const {
    std::vector<Pointer> result;
    for (const Region& region : regions) result.push_back((*this)(region));
    result.resize(count);
    return result;
  }
  std::shared_ptr<LayerPointers> pointers(const PlanBinding& binding, const Layer& layer,
                                          LayerPass layer_pass, bool accumulates) const {
    const size_t inputs = layer.inputs.size(), outputs = layer.outputs.size(),
                 weights = layer.weights.size();
    auto result = std::make_shared<LayerPointers>();
    result->inputs = all<void*>(binding.inputs, inputs);
    result->outputs = all<void*>(binding.outputs, outputs);
    result->weights = all<void*>(binding.weights, weights);
    result->input_gradients = all<void*>(binding.input_gradients, inputs);
    result->output_gradients = all<const void*>(binding.output_gradients, outputs);
    result->weight_gradients = all<void*>(binding.weight_gradients, weights);
    tandem_pass& pass = result->pass;
    if (accumulates) pass.flags = TANDEM_ACCUMULATE;
    pass.saved = (*this)({binding.saved});
    pass.scratch = (*this)({scratch_of(binding, layer_pass)});
    pass.step = as<const tandem_step>(binding.step);
    pass.normaliser = as<const float>(binding.normaliser);
    pass.statistics = as<float>(statistics_of(binding, layer_pass));
    pass.row_labels = as<const float>(binding.row_labels);
    if (layer_pass == LayerPass::forward) pass.addend = (*this)(binding.addend);
    result->connect();
    return result;
  }
};

}  // namespace tandem
