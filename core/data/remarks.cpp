#include "core/data/remarks.h"

#include <algorithm>

namespace tandem {

void Remarks::add(const std::string& text, int64_t index) {
  const std::lock_guard lock(mutex_);
  std::vector<bool>& samples = samples_[text];
  const auto at = static_cast<size_t>(index);
  if (samples.size() <= at) samples.resize(at + 1, false);
  samples[at] = true;
}

std::vector<Remark> Remarks::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Remark> remarks;
  for (const auto& [text, samples] : samples_) {
    const auto first = std::find(samples.begin(), samples.end(), true);
    remarks.push_back(
        {text, std::count(samples.begin(), samples.end(), true), first - samples.begin()});
  }
  return remarks;
}

}  // namespace tandem
