// Addresses of a plan's regions in one step, for the lowering of its works.
#pragma once

#include <vector>

#include "core/schedule/execution/lowering.h"

namespace tandem {

struct Lowering::Resolver {
  const Lowering& lowering;
  int64_t step;
  const std::vector<void*>& externals;

  std::byte* operator()(const Region& region) const {
    return lowering.address(region, step, externals);
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
  // `count` entries: kernels index them without asking; what the plan leaves out is not wanted.
  template <class Pointer>
  std::vector<Pointer> all(const std::vector<Region>& regions, size_t count) const {
    std::vector<Pointer> result;
    for (const Region& region : regions) result.push_back((*this)(region));
    result.resize(count);
    return result;
  }
};

}  // namespace tandem
