// What a loss and a metric over labelled rows share: one score per class, one label per row, and
// which rows count. A row without a sample has a label below zero.
#pragma once

#include <cmath>
#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::layers {

// Refuses inputs that are not (rows, classes, 1, 1) scores and (rows, 1, 1, 1) labels.
inline void demand_rows(const sdk::Shape& scores, const sdk::Shape& labels) {
  if (scores.h != 1 || scores.w != 1) {
    throw sdk::unsupported("needs one score per class and row, but its input is ",
                           sdk::text_of(scores), ": put an InnerProduct or a pooling before it");
  }
  if (labels.n != scores.n || sdk::count(labels) != labels.n) {
    throw sdk::invalid("needs one label per row, but has labels ", sdk::text_of(labels), " for ",
                       scores.n, " rows");
  }
}

class Labels {
 public:
  // Rows labelled `ignored` do not count, if `ignores`.
  Labels(const sdk::Attributes& attributes, int64_t classes)
      : classes_(classes),
        ignores_(attributes.is_set("ignore_label")),
        ignored_(ignores_ ? attributes.integer("ignore_label") : 0) {}

  // The row's class, or -1 if the row does not count. Throws Refusal for a label that is no class.
  [[nodiscard]] int64_t of(const float* labels, int64_t row) const {
    const float label = labels[row];
    if (label < 0) return -1;
    if (std::floor(label) != label) {
      throw sdk::failed("label ", label, " of row ", row, " is not a whole number");
    }
    if (ignores_ && label == static_cast<float>(ignored_)) return -1;
    if (label >= static_cast<float>(classes_)) {
      throw sdk::failed("label ", label, " of row ", row, " is not below the ", classes_,
                        " classes");
    }
    return static_cast<int64_t>(label);
  }

 private:
  int64_t classes_;
  bool ignores_;
  int64_t ignored_;
};

}  // namespace tandem::layers
