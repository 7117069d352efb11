// A confusion matrix as HTML: a table for few classes; for many a clustered picture, the groups of
// classes that are confused, and the pairs.
#pragma once

#include <string>
#include <vector>

#include "core/report/confusion.h"

namespace tandem {

[[nodiscard]] std::string confusion_html(const Confusion& confusion,
                                         const std::vector<std::string>& class_names);
// Images, precision, recall and F1 of each class, and what it is most often taken for. Of more than
// 1,000 classes: those of the lowest F1. `training_counts` may be empty.
[[nodiscard]] std::string class_table(const Confusion& confusion,
                                      const std::vector<std::string>& class_names,
                                      const std::vector<int64_t>& training_counts);

}  // namespace tandem
