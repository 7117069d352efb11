// Labels as a weight for each class, and images of a batch mixed with each other: mixup (Zhang et
// al., 2018) and CutMix (Yun et al., 2019). Rows 2k and 2k + 1 of a batch are mixed with each
// other, both of them; how is a function of the seed given for the pair, never of threads or
// devices.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/shape.h"

namespace tandem {

struct TargetOptions {
  bool wanted = false;  // the net reads a weight for each class, beside the label
  double mixup = 0;     // pairs are mixed with shares from Beta(mixup, mixup); 0: they are not
  double cutmix = 0;  // pairs exchange a box, its share from Beta(cutmix, cutmix); 0: they do not.
                      // Both: either for half of the pairs
  std::vector<float> class_weights;  // what a sample of each class counts; empty: 1

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

// From the label: its class's weight, zeros for the others; all zeros for a row without a sample.
void write_target(const TargetOptions& options, int64_t classes, const TargetRow& row);

// Two rows that hold samples, after write_target(). A row's label is the class of its larger part.
void mix_rows(const TargetOptions& options, const Shape& sample, int64_t classes, uint64_t seed,
              const TargetRow& a, const TargetRow& b);

}  // namespace tandem
