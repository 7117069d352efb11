#include "core/data/remark_lines.h"

#include <fmt/format.h>

namespace tandem {

std::vector<std::string> remark_lines(const Dataset& dataset) {
  std::vector<std::string> lines;
  for (const Remark& one : dataset.remarks()) {
    lines.push_back(fmt::format("{} image{} used all the same: {} (the first: {})", one.count,
                                one.count == 1 ? " was" : "s were", one.text,
                                dataset.sample_name(one.first)));
  }
  return lines;
}

}  // namespace tandem
