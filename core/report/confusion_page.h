// A confusion matrix as a page shows it: a table for few classes; for many a clustered picture, the
// groups of classes that are confused, and the pairs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/report/confusion.h"
#include "core/report/display.h"

namespace tandem {

[[nodiscard]] nlohmann::json confusion_json(const Confusion& confusion,
                                            const std::vector<std::string>& class_names);
// All cells as points, mistakes red and hits blue: rows are true classes, columns predicted ones,
// in the order that it writes. Of more than 250 classes each point is several.
[[nodiscard]] DrawnPicture confusion_picture(const Confusion& confusion,
                                             std::vector<int64_t>& order);
// Images, precision, recall and F1 of each class, and what it is most often taken for. Of more than
// 1,000 classes: those of the lowest F1. `training_counts` may be empty.
[[nodiscard]] nlohmann::json classes_json(const Confusion& confusion,
                                          const std::vector<std::string>& class_names,
                                          const std::vector<int64_t>& training_counts);

}  // namespace tandem
