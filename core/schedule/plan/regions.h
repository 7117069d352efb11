// All regions that a work or a binding names, for what checks them or moves them to other buffers.
#pragma once

#include <variant>

#include "core/base/overloaded.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// Calls visit(region) for each; those that a work may do without only where they are there.
template <class SomeWork, class Visit>
void for_each_region(SomeWork& some, const Visit& visit) {
  const auto visit_all = [&](auto& regions) {
    for (auto& region : regions) visit(region);
  };
  const auto visit_given = [&](auto& region) {
    if (region.buffer >= 0) visit(region);
  };
  std::visit(overloaded{
                 [](OneOf<LayerWork> auto&) {},
                 [&](OneOf<CopyWork> auto& work) {
                   for (auto& segment : work.segments) {
                     visit(segment.source);
                     visit(segment.target);
                   }
                 },
                 [&](OneOf<AddWork, MergeWork> auto& work) {
                   visit(work.target);
                   visit_all(work.sources);
                 },
                 [&](OneOf<NormWork> auto& work) {
                   visit(work.norms);
                   for (auto& array : work.arrays) {
                     visit(array.values);
                     visit(array.gradient);
                   }
                 },
                 [&](OneOf<UpdateWork> auto& work) {
                   visit(work.step);
                   visit(work.found_inf);
                   visit_given(work.norms);
                   for (auto& array : work.arrays) {
                     visit(array.weights);
                     visit(array.gradient);
                     visit_given(array.state);
                   }
                 },
                 [&](OneOf<CheckWork> auto& work) {
                   visit(work.values);
                   visit(work.found_inf);
                 },
                 [&](OneOf<ConvertWork> auto& work) {
                   visit(work.pixels);
                   visit(work.target);
                 },
                 [&](OneOf<SendWork, ReceiveWork> auto& work) {
                   visit_all(work.regions);
                   visit_given(work.staging);
                 },
             },
             some);
}

// Those of the binding that it has.
template <class Visit>
void for_each_region_of(PlanBinding& use, const Visit& visit) {
  const auto visit_given = [&](Region& region) {
    if (region.buffer >= 0) visit(region);
  };
  for (auto* regions : {&use.inputs, &use.outputs, &use.weights, &use.input_gradients,
                        &use.output_gradients, &use.weight_gradients}) {
    for (Region& region : *regions) visit_given(region);
  }
  for (Region* region : {&use.addend, &use.step, &use.normaliser, &use.row_labels,
                         &use.forward_statistics, &use.backward_statistics}) {
    visit_given(*region);
  }
}

}  // namespace tandem
