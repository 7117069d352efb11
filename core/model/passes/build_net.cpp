#include "core/model/passes/build_net.h"

#include <limits>
#include <optional>
#include <utility>

#include "core/model/net/draft.h"
#include "core/model/net/loss_scale.h"
#include "core/model/passes/passes.h"
#include "core/model/passes/results.h"

namespace tandem {
namespace {

// The net of the other phase, whose weights must be the same. It may not exist: a deploy net cannot
// be trained.
std::optional<Draft> resolve_other_phase(const NetDefinition& definition, const Registry& registry,
                                         const NetOptions& options) {
  try {
    return resolve(definition, registry, options,
                   options.phase == TANDEM_TRAIN ? TANDEM_TEST : TANDEM_TRAIN);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_batch(int64_t batch) {
  constexpr int64_t max_batch = std::numeric_limits<int32_t>::max();
  if (batch < 1) throw error("batch {}: a batch has at least 1 sample", batch);
  if (batch > max_batch) throw error("batch {}: a batch has at most {} samples", batch, max_batch);
}

}  // namespace

Net build_net(const NetDefinition& definition, const Registry& registry,
              const NetOptions& options) {
  check_batch(options.batch);
  Draft draft = resolve(definition, registry, options, options.phase);
  const std::optional<Draft> other = resolve_other_phase(definition, registry, options);
  place_weights(draft, other ? &*other : nullptr);
  if (!options.device_kind.empty()) join_scales(definition, draft, options.device_kind);
  insert_loss_sums(definition, draft);
  find_gradients(draft);
  insert_splits(draft);
  if (!options.device_kind.empty()) choose_dtypes(draft, options.device_kind, options.precision);
  if (!options.device_kind.empty()) choose_layouts(draft, options.device_kind);
  view_splits(draft);
  if (!options.device_kind.empty()) order_sums(draft, options.device_kind);
  run_in_place(draft);
  view_gradients_of_sums(draft);
  find_results(draft);
  if (!options.device_kind.empty()) fuse_layers(draft, options.device_kind);
  if (options.loss_scale != 0) {
    require_loss_scale(options.loss_scale);
    draft.net.loss_scale = options.loss_scale;
  }
  return std::move(draft.net);
}

}  // namespace tandem
