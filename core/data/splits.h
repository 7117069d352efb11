// The splits of a source: opening all of them, and writing a division into splits as a list.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace tandem {

struct NamedSplit {
  std::string name;
  std::unique_ptr<Dataset> dataset;
};
// The splits of a source, opened as they are stored: train, val, and test if it is a split of its
// own. `shape`: as in DatasetOptions. Parameters that transform pixels are ignored.
[[nodiscard]] std::vector<NamedSplit> open_splits(
    Registry& registry, const std::string& source,
    const std::map<std::string, std::string>& parameters, uint64_t seed, const Shape& shape);

// Whether the parameters have a val_fraction of 0. A split that is drawn then has no validation
// samples.
[[nodiscard]] bool holds_out_nothing(const std::map<std::string, std::string>& parameters);

// Every sample of the two with its absolute path, as CSV of path,class_name,split, which the data
// set image_list reads; a class_name is one class, whatever its text looks like. "" if the samples
// are not files of their own, or are in a folder whose path has a line break: a list has one path
// on each line.
[[nodiscard]] std::string split_list(const Dataset& training, const Dataset& validation);

}  // namespace tandem
