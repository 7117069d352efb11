// What an audit suggests.
#include <algorithm>

#include "core/base/error.h"
#include "core/data/audit.h"

namespace tandem {

std::vector<std::string> suggestions(const Audit& audit) {
  constexpr double much_more = 3;
  constexpr int64_t few = 20, large_side = 512;
  std::vector<std::string> lines;
  const SplitAudit& train = audit.splits[0];
  const auto [least, most] =
      std::minmax_element(train.class_counts.begin(), train.class_counts.end());
  const auto name_of = [&](auto at) {
    return audit.class_names[static_cast<size_t>(at - train.class_counts.begin())];
  };
  if (!audit.leaks.empty()) {
    lines.push_back(fmt::format(
        "{} images are in two splits: take them out of one, or accuracy will look too good",
        audit.leaks.size()));
  }
  if (!audit.conflicts.empty()) {
    lines.push_back(
        fmt::format("{} images are there as two classes: decide on one", audit.conflicts.size()));
  }
  if (static_cast<double>(*most) > much_more * static_cast<double>(*least)) {
    lines.push_back(fmt::format(
        "class '{}' has {} images, '{}' has {}: train with --balance, and judge by each class",
        name_of(most), *most, name_of(least), *least));
  }
  if (*least < few) {
    lines.push_back(fmt::format(
        "class '{}' has {} images to learn from: begin with trained weights (--weights)",
        name_of(least), *least));
  }
  const auto bad = static_cast<double>(train.bad.size());
  if (bad > 0.05 * static_cast<double>(train.samples)) {
    lines.push_back(
        "more than 5 % of the training images are damaged, at which training stops: repair them, "
        "or allow more with --bad-limit");
  }
  if (train.median_side >= large_side && train.formats.count("JPEG") > 0) {
    lines.push_back(fmt::format(
        "half of the images have a shorter side of {} pixels or more: 'tandem pack' makes them "
        "smaller once, instead of in every epoch",
        train.median_side));
  }
  return lines;
}

}  // namespace tandem
