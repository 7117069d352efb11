// Counts what the samples of a split are: of which classes or labels, in which range of numbers,
// and of which sizes. The audit of all samples and the outline of some fill the same tables with
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/audit/audit.h"

namespace tandem {

// With a count of 0 for each class.
[[nodiscard]] SplitAudit begin_split(const std::string& name, const Dataset& dataset,
                                     size_t classes);

// Counts a sample: for its class, or for each of its labels.
class SampleCounter {
 public:
  SampleCounter(const Dataset& dataset, SplitAudit& split);
  // `label`: the class, where samples have one.
  void add(int64_t index, int64_t label);

 private:
  const Dataset& dataset_;
  SplitAudit& split_;
  std::vector<float> values_;
  int64_t count_ = 0;
};

// Counts the channels of a sample, and adds its shorter side to `sides` if it is known.
void add_size(const StoredSample& stored, SplitAudit& split, std::vector<int64_t>& sides);
void set_sides(SplitAudit& split, std::vector<int64_t> sides);

}  // namespace tandem
