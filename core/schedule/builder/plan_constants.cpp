// What a plan's losses begin their gradients with.
#include "core/model/loss_scale.h"
#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {

Region PlanBuilder::constant(int device, int scalar) {
  constexpr size_t floats = buffers::scalar_bytes / sizeof(float);
  const std::vector<Scalar>& scalars = net().scalars;
  Buffer description{buffers::constants,
                     device,
                     BufferKind::persistent,
                     0,
                     1,
                     std::vector<float>(scalars.size() * floats, 0.0F)};
  for (size_t i = 0; i < scalars.size(); ++i) {
    description.initial[i * floats] =
        static_cast<float>(scalars[i].loss_weight * loss_scale(net()));
  }
  description.bytes = static_cast<int64_t>(description.initial.size() * sizeof(float));
  return {buffer(description), scalar * buffers::scalar_bytes, sizeof(float)};
}

}  // namespace tandem
