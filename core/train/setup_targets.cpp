#include "core/train/setup_targets.h"

#include "core/base/error.h"
#include "core/model/classes.h"
#include "core/train/class_weights.h"

namespace tandem {

void resolve_targets(const Registry& registry, TrainSetup& setup) {
  const TrainOptions& chosen = setup.record.options;
  if (chosen.balance && chosen.class_weights == "balanced") {
    throw error(
        "--balance and --class-weights balanced: each makes up for rare classes, both of them "
        "twice "
        "as much as is right; give one");
  }
  if (!chosen.class_weights.empty()) {
    setup.record.class_weights = read_class_weights(chosen.class_weights, *setup.training_data);
  }
  const bool mixes = chosen.mixup != 0 || chosen.cutmix != 0;
  if (mixes || !setup.record.class_weights.empty()) {
    setup.net = with_class_targets(setup.net, registry, setup.training_data->class_count());
  }
  check_targets(target_options(setup), setup.training_data->class_count());
}

TargetOptions target_options(const TrainSetup& setup) {
  TargetOptions targets;
  targets.wanted = reads_class_targets(setup.net);
  targets.mixup = setup.record.options.mixup;
  targets.cutmix = setup.record.options.cutmix;
  targets.class_weights = setup.record.class_weights;
  return targets;
}

}  // namespace tandem
