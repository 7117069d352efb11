// Which memory of a plan in the making still lacks an activation that a layer's kernel could have
// done along but did not, as where it computes a slice. So the activation's own forward pass is
// emitted there and nowhere else, and a plan that would leave it out or do it twice is an Error
// that names strategy, task and layers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/model/net.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

class PendingActivations {
 public:
  // The next task of the plan; tasks come in a valid order. Copies carry on what they copy.
  void follow(const Net& net, const Plan& plan, const Task& task);
  // Whether any of these bytes lack one.
  [[nodiscard]] bool has(const Plan& plan, const Region& region) const;

 private:
  struct Piece {
    int64_t begin = 0, end = 0;  // bytes of the buffer
    int layer = -1;              // the activation
  };
  using Pieces = std::vector<Piece>;

  void follow_forward(const Net& net, const Plan& plan, const Task& task, const LayerWork& work);
  void follow_copy(const Net& net, const Plan& plan, const Task& task, const CopyWork& copy);
  [[nodiscard]] Pieces pieces_in(const Plan& plan, const Region& region) const;
  [[nodiscard]] bool lacks_all(const Plan& plan, const Region& region, int layer) const;
  void clear(const Plan& plan, const Region& region);
  void add(const Plan& plan, const Region& region, int layer);
  void require_done(const Net& net, const Plan& plan, const Task& task, const Region& region) const;

  std::map<int, Pieces> pieces_;  // by buffer, none where it is not there
};

}  // namespace tandem
