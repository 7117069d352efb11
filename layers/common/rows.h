// What losses and metrics over classes share: the arrangement of scores and labels, and which
// labels count. A row without a sample has a label below zero.
#pragma once

#include <cmath>
#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::layers {

// Plain scores as outer x classes x inner, with one label for each (outer, inner).
struct ScoreShape {
  ScoreShape(const sdk::Shape& scores, int64_t axis) : rows(scores.n) {
    const int64_t sizes[] = {scores.n, scores.c, scores.h, scores.w};
    for (int64_t i = 0; i < axis; ++i) outer *= sizes[i];
    for (int64_t i = axis + 1; i < 4; ++i) inner *= sizes[i];
    classes = sizes[axis];
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t labels() const { return outer * inner; }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t labels_of_row() const { return labels() / rows; }

  int64_t rows = 0, outer = 1, classes = 1, inner = 1;
};

inline sdk::Parameter axis_parameter(const char* block) {
  return sdk::integer(block, "axis")
      .by_default("1")
      .range(1, 3)
      .help("axis of the classes; 1: channels");
}

// Refuses labels unless there is one for each row and position of the scores.
inline ScoreShape require_labels(const sdk::Query& query, int64_t axis) {
  const sdk::Shape &scores = query.input(0), &labels = query.input(1);
  const ScoreShape shape(scores, axis);
  if (labels.n == scores.n && sdk::count(labels) == shape.labels()) return shape;
  if (shape.labels_of_row() == 1) {
    throw sdk::invalid("needs one label per row, but has labels ", sdk::text_of(labels), " for ",
                       scores.n, " rows");
  }
  if (sdk::count(labels) == scores.n) {
    throw sdk::invalid(
        "has one label per row, but scores for ", shape.labels_of_row(), " positions of each, ",
        sdk::text_of(scores),
        ": add an InnerProduct or a pooling before it, or give each position a label");
  }
  throw sdk::invalid("needs a label for each of the ", shape.labels_of_row(),
                     " positions of a row, but has labels ", sdk::text_of(labels), " for scores ",
                     sdk::text_of(scores));
}

class Labels {
 public:
  explicit Labels(const ScoreShape& shape) : shape_(shape) {}
  // With the layer's ignore_label, if it is set.
  Labels(const ScoreShape& shape, const sdk::Attributes& attributes)
      : shape_(shape),
        ignores_(attributes.is_set("ignore_label")),
        ignored_(ignores_ ? static_cast<float>(attributes.integer("ignore_label")) : 0) {}

  // The class of label `index`, or -1 if it does not count. Throws Refusal for an invalid class.
  [[nodiscard]] int64_t of(const sdk::Pass& pass, int64_t index) const {
    const float label = pass.input(1)[index];
    const int64_t row = index / shape_.labels_of_row();
    if (label < 0 || (ignores_ && label == ignored_) || !pass.holds_sample(row)) return -1;
    if (std::floor(label) != label) {
      throw sdk::failed("label ", label, " of row ", row, " is not a whole number");
    }
    if (label >= static_cast<float>(shape_.classes)) {
      throw sdk::failed("label ", label, " of row ", row, " is not below the ", shape_.classes,
                        " classes");
    }
    return static_cast<int64_t>(label);
  }
  // The number of labels that count. After it, of() does not throw.
  [[nodiscard]] int64_t check(const sdk::Pass& pass) const {
    int64_t counted = 0;
    for (int64_t i = 0; i < shape_.labels(); ++i) counted += of(pass, i) >= 0 ? 1 : 0;
    return counted;
  }

 private:
  ScoreShape shape_;
  bool ignores_ = false;
  float ignored_ = 0;
};

}  // namespace tandem::layers
