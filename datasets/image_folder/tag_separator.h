// What stands between the names of labels in a column.
#pragma once

#include <set>
#include <string>

namespace tandem::image_folder {

// Whether a heading says that the column has several labels, as "labels", "tags", "target ids".
[[nodiscard]] bool is_of_labels(const std::string& heading);
// A mark; '[': the cells are lists as Python, JSON or numpy write them; '\0': each value is one
// name. `is_forced`: the values are known to name labels.
[[nodiscard]] char tag_separator(const std::set<std::string>& values, const std::string& heading,
                                 bool is_forced);

}  // namespace tandem::image_folder
