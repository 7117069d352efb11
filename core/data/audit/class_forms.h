// Finds what of the files, not of the images, would tell a class: a form or a size that all of its
// files and no other class's have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace tandem {

// What an audit saw of one sample; `reason`: why it is not good.
struct SeenSample {
  bool good = false;
  int64_t label = -1;
  std::string reason;
  StoredSample stored;
};

// A line for the first such class by form, and for the first by size; none for under four files.
[[nodiscard]] std::vector<std::string> class_forms(const std::vector<SeenSample>& seen,
                                                   const std::vector<std::string>& class_names);

}  // namespace tandem
