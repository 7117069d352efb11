// Targets: a weight for each class in place of a label, and mixed images: mixup (Zhang et al.,
// 2018) and CutMix (Yun et al., 2019). Rows 2k and 2k + 1 of a batch are mixed with each other. The
// mixture is a function of the pair's seed, whatever the threads and devices are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/numbers/shape.h"

namespace tandem {

struct TargetOptions {
  bool wanted = false;  // the net reads a weight for each class, besides the label
  // mixup: pairs are blended with shares from Beta(mixup, mixup). cutmix: pairs exchange a box with
  // a share from Beta(cutmix, cutmix). 0: off. With both, each for half of the pairs.
  double mixup = 0, cutmix = 0;
  std::vector<float> class_weights;  // of a sample of each class; empty: 1
  // Label smoothing (Szegedy et al., 2016): this share of a sample's weight is spread over all
  // classes.
  double smoothing = 0;

  [[nodiscard]] bool mixes() const { return mixup > 0 || cutmix > 0; }
  bool operator==(const TargetOptions&) const = default;
};

// Error for values out of range, or another number of weights than classes.
void check_targets(const TargetOptions& options, int64_t classes);

// One row of a batch: C,H,W floats, the class, and a weight for each class.
struct TargetRow {
  float* pixels = nullptr;
  float* label = nullptr;
  float* target = nullptr;
};

// From the label: its class's weight, zeros for the others, then smoothed; all zeros for a row
// without a sample.
void write_target(const TargetOptions& options, int64_t classes, const TargetRow& row);

// Mixes two rows with samples, after write_target(). The label of a row is the class of its larger
// part.
void mix_rows(const TargetOptions& options, const Shape& sample, int64_t classes, uint64_t seed,
              const TargetRow& a, const TargetRow& b);

}  // namespace tandem
