#include "core/data/audit/split_counts.h"

#include <algorithm>

namespace tandem {

SplitAudit begin_split(const std::string& name, const Dataset& dataset, size_t classes) {
  SplitAudit split;
  split.name = name;
  split.samples = dataset.size();
  split.notes = dataset.notes();
  split.class_counts.assign(classes, 0);
  return split;
}

SampleCounter::SampleCounter(const Dataset& dataset, SplitAudit& split)
    : dataset_(dataset), split_(split), values_(split.class_counts.size()) {
  if (dataset.task() == TANDEM_TASK_VALUES) split.ranges.resize(values_.size());
}

void SampleCounter::add(int64_t index, int64_t label) {
  if (dataset_.task() == TANDEM_TASK_CLASSES) {
    ++split_.class_counts[size_t(label)];
    return;
  }
  dataset_.values(index, values_.data());
  ++count_;
  bool has_label = false;
  for (size_t k = 0; k < values_.size(); ++k) {
    const double value = values_[k];
    if (dataset_.task() == TANDEM_TASK_LABELS) {
      split_.class_counts[k] += value != 0 ? 1 : 0;
      has_label = has_label || value != 0;
      continue;
    }
    ValueRange& range = split_.ranges[k];
    if (count_ == 1) range = {value, 0, value};
    range.least = std::min(range.least, value);
    range.most = std::max(range.most, value);
    range.mean += (value - range.mean) / static_cast<double>(count_);
  }
  if (dataset_.task() == TANDEM_TASK_LABELS && !has_label) ++split_.without_label;
}

void add_size(const StoredSample& stored, SplitAudit& split, std::vector<int64_t>& sides) {
  ++split.channels[stored.channels];
  if (stored.width > 0) sides.push_back(std::min(stored.width, stored.height));
}

void set_sides(SplitAudit& split, std::vector<int64_t> sides) {
  if (sides.empty()) return;
  std::sort(sides.begin(), sides.end());
  split.min_side = sides.front();
  split.median_side = sides[sides.size() / 2];
  split.max_side = sides.back();
}

Audit outline(const std::vector<KnownSplit>& splits, int64_t described_samples) {
  Audit audit;
  audit.type = splits.at(0).dataset->type_name();
  audit.task = splits[0].dataset->task();
  audit.class_names = splits[0].dataset->class_names();
  for (const auto& [name, dataset] : splits) {
    SplitAudit split = begin_split(name, *dataset, audit.class_names.size());
    SampleCounter counter(*dataset, split);
    for (int64_t i = 0; i < dataset->size(); ++i) {
      const auto label = dataset->label(i);
      if (!label) break;
      counter.add(i, *label);
    }
    std::vector<int64_t> sides;
    const int64_t described = std::min(described_samples, dataset->size());
    for (int64_t i = 0; i < described; ++i) {
      std::string reason;
      const auto stored = dataset->describe(i * dataset->size() / described, &reason);
      if (!stored) continue;
      if (!stored->format.empty()) ++split.formats[stored->format];
      add_size(*stored, split, sides);
    }
    set_sides(split, std::move(sides));
    audit.splits.push_back(std::move(split));
  }
  return audit;
}

}  // namespace tandem
