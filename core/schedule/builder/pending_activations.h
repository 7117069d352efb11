// Tracks, while a plan is built, memory to which a fused activation has not been applied yet: the
// net fuses it into the layer before, but that layer's task does not apply it, for example
// because it computes a slice. Only there the activation's own forward pass is emitted. A plan that
// would leave an activation out or apply it twice is an Error that names strategy, task and layers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/base/numbers/interval.h"
#include "core/model/net/net.h"
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
