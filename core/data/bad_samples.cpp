#include "core/data/bad_samples.h"

#include <algorithm>

#include "core/base/error.h"

namespace tandem {
namespace {
constexpr int64_t seen_before_limit = 200;
constexpr size_t listed = 5;
}  // namespace

void BadSamples::add(int64_t batch, int64_t samples, const std::vector<BadSample>& damaged) {
  for (const BadSample& one : damaged) {
    if (names_.insert(one.name).second) list_.push_back(one);
  }
  const auto count = static_cast<int64_t>(damaged.size());
  seen_ += samples;
  damaged_ += count;
  if (share_limit_ >= 1) return;
  if (share_limit_ <= 0 && count > 0) {
    throw error("image '{}' cannot be used, and every one must be: {}", damaged[0].name,
                damaged[0].reason);
  }
  if (count > 0 && count == samples) {
    throw error("all {} images of batch {} cannot be used: {}", samples, batch, to_string(damaged));
  }
  const auto known = static_cast<double>(names_.size()), size = static_cast<double>(size_);
  if (known > std::max(1.0, share_limit_ * size)) {
    throw error(
        "{} of the {} images, or more, cannot be used ({:.1f} %, the limit is {:.1f} %: "
        "--bad-limit): "
        "{}",
        names_.size(), size_, 100 * known / size, 100 * share_limit_, to_string(list_));
  }
  if (seen_ < seen_before_limit || size_ < seen_before_limit) return;
  const double share = static_cast<double>(damaged_) / static_cast<double>(seen_);
  if (share > share_limit_) {
    throw error("{} of {} images read so far cannot be used ({:.1f} %, the limit is {:.1f} %): {}",
                damaged_, seen_, 100 * share, 100 * share_limit_, to_string(list_));
  }
}

std::string to_string(const std::vector<BadSample>& samples) {
  std::string text;
  for (size_t i = 0; i < std::min(samples.size(), listed); ++i) {
    text += fmt::format("{}{}: {}", i == 0 ? "" : "; ", samples[i].name, samples[i].reason);
  }
  if (samples.size() > listed) text += fmt::format("; and {} more", samples.size() - listed);
  return text;
}

}  // namespace tandem
