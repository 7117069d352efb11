#include <algorithm>

#include "core/data/audit/audit.h"

namespace tandem {
namespace {

// Why nothing can be learned from the training images; "" if something can.
std::string why_nothing_is_learned(const Audit& audit) {
  const SplitAudit& train = audit.splits[0];
  const auto used = std::count_if(train.class_counts.begin(), train.class_counts.end(),
                                  [](int64_t count) { return count > 0; });
  if (audit.task == TANDEM_TASK_CLASSES && used == 1) return "all training images are of one class";
  int64_t good = 0;
  for (const SplitAudit& split : audit.splits) {
    good += split.samples - static_cast<int64_t>(split.bad.size());
  }
  const auto doubled = static_cast<int64_t>(audit.leaks.size() + audit.conflicts.size());
  if (good > 1 && doubled + audit.repeated == good - 1) return "all images are copies of one";
  const bool is_flat =
      !audit.deviation.empty() && std::all_of(audit.deviation.begin(), audit.deviation.end(),
                                              [](double deviation) { return deviation == 0; });
  return is_flat ? "all pixels of the training images have one value" : "";
}

}  // namespace

std::vector<std::string> suggestions(const Audit& audit) {
  constexpr double much_more = 3;
  constexpr int64_t few = 20, large_side = 512;
  std::vector<std::string> lines;
  const SplitAudit& train = audit.splits[0];
  const auto [least, most] =
      std::minmax_element(train.class_counts.begin(), train.class_counts.end());
  const auto name_of = [&](auto at) {
    return audit.class_names[size_t(at - train.class_counts.begin())];
  };
  if (const std::string why = why_nothing_is_learned(audit); !why.empty()) {
    lines.push_back(why + ": nothing can be learned from them; give others");
  }
  if (!audit.leaks.empty()) {
    lines.push_back(
        fmt::format("{} in two splits: keep each in one of them, or accuracy will look too good",
                    image_count(audit.leaks.size())));
  }
  if (!audit.conflicts.empty()) {
    lines.push_back(
        fmt::format("{} in two classes: decide on one", image_count(audit.conflicts.size())));
  }
  const bool has_classes = audit.task == TANDEM_TASK_CLASSES;
  if (has_classes && static_cast<double>(*most) > much_more * static_cast<double>(*least)) {
    lines.push_back(fmt::format(
        "class '{}' has {} images, '{}' has {}: train with --balance, and judge by each class",
        name_of(most), *most, name_of(least), *least));
  }
  const char* class_word = has_classes ? "class" : "label";
  if (audit.task != TANDEM_TASK_VALUES && *least == 0) {
    lines.push_back(fmt::format("{} '{}' has no image to learn from", class_word, name_of(least)));
  } else if (audit.task != TANDEM_TASK_VALUES && *least < few) {
    lines.push_back(
        fmt::format("{} '{}' has {} images to learn from: begin with trained weights (--weights)",
                    class_word, name_of(least), *least));
  }
  const auto bad = static_cast<double>(train.bad.size());
  if (bad > std::max(1.0, 0.05 * static_cast<double>(train.samples))) {
    lines.push_back(
        "more than 5 % of the training images cannot be used, at which training stops: repair "
        "them, "
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

std::vector<ReasonCount> by_reason(const std::vector<BadSample>& bad) {
  std::vector<ReasonCount> reasons;
  for (const BadSample& sample : bad) {
    const auto same = [&](const ReasonCount& one) { return one.reason == sample.reason; };
    const auto found = std::find_if(reasons.begin(), reasons.end(), same);
    if (found == reasons.end()) {
      reasons.push_back({sample.reason, 1, sample.name});
    } else {
      ++found->count;
    }
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return reasons;
}

std::string image_count(size_t count) {
  return fmt::format("{} image{}", count, count == 1 ? "" : "s");
}

}  // namespace tandem
