// Which memory of a plan in the making still lacks an activation that is fused into the layer
// before in the net, but was not applied by the kernel, as where that computes a slice. The
// activation's own forward pass is emitted there and nowhere else. A plan that would leave it out
// or apply it twice is an Error that names strategy, task and layers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/base/interval.h"
#include "core/model/net.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

class PendingActivations {
 public:
  // The next task of the plan; tasks come in a valid order. The target of a copy lacks what its
  // source lacks.
  void follow(const Net& net, const Plan& plan, const Task& task);
  // Whether any of these bytes lack an activation.
  [[nodiscard]] bool has(const Plan& plan, const Region& region) const;

 private:
  struct Pending {
    Interval bytes;  // of the buffer
    int layer = -1;  // the activation
  };

  void follow_forward(const Net& net, const Plan& plan, const Task& task, const LayerWork& work);
  void follow_copy(const Net& net, const Plan& plan, const Task& task, const CopyWork& copy);
  [[nodiscard]] std::vector<Pending> pending_in(const Plan& plan, const Region& region) const;
  [[nodiscard]] bool lacks_all(const Plan& plan, const Region& region, int layer) const;
  void clear(const Plan& plan, const Region& region);
  void add(const Plan& plan, const Region& region, int layer);
  void require_done(const Net& net, const Plan& plan, const Task& task, const Region& region) const;

  std::map<int, std::vector<Pending>> pending_;  // by buffer; buffers without any are left out
};

}  // namespace tandem
