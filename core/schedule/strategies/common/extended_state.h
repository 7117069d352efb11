// Updates of a device whose solver state lies in its extended memory: a second, larger and slower
// one (a memory-mapped file on the cpu, pinned host memory on a GPU). The state is copied to the
// device and back in parts, through two windows: while one part is updated, the next is copied.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"

namespace tandem {

class ExtendedState {
 public:
  // `builder` outlives it.
  explicit ExtendedState(PlanBuilder& builder) : builder_(builder) {}

  // "update <what> @2", in parts, with the copies of its state before and after each.
  void emit_update(const std::string& what, Stage stage, int device,
                   const std::vector<int>& weights);

 private:
  // Bytes of one solver array that a window holds.
  [[nodiscard]] int64_t window_bytes() const;
  void emit_part(const std::string& name, Stage stage, int device,
                 const std::vector<WeightSlice>& parts);

  PlanBuilder& builder_;
  std::map<int, int> parts_;  // so far in this step, by device
};

}  // namespace tandem
