#include "core/data/audit/audit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/data/audit/class_forms.h"
#include "core/data/audit/pixel_sums.h"
#include "core/data/audit/split_counts.h"
#include "core/data/splits.h"

namespace tandem {
namespace {

// A page has room for some large pictures or for many small ones.
constexpr size_t few_thumbnails = 64, max_shown_classes = 1000;
// Of the pictures that are summed. Larger ones would say hardly more, and take most of the time
// where files are small.
constexpr int64_t measured_side = 64;
constexpr size_t shown_duplicates = 12;  // of each kind

struct SampleId {
  size_t split;
  int64_t index;
};

std::vector<unsigned char> to_rgb(const std::vector<float>& pixels, int64_t channels) {
  const size_t plane = pixels.size() / size_t(channels);
  std::vector<unsigned char> result(3 * plane);
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const float value = pixels[(channels == 3 ? (2 - c) * plane : 0) + i];
      result[3 * i + c] = static_cast<unsigned char>(std::lround(std::clamp(value, 0.0F, 255.0F)));
    }
  }
  return result;
}

// The class of a sample, its labels, or its numbers; "" if the data set cannot tell.
std::string label_text(const Dataset& dataset, const std::vector<std::string>& names,
                       int64_t index) {
  if (dataset.task() == TANDEM_TASK_CLASSES) {
    const auto label = dataset.label(index);
    return label ? names[size_t(*label)] : std::string();
  }
  std::vector<float> values(names.size());
  dataset.values(index, values.data());
  std::vector<std::string> texts;
  for (size_t k = 0; k < names.size(); ++k) {
    if (dataset.task() == TANDEM_TASK_VALUES) {
      texts.push_back(fmt::format("{} {:.6g}", names[k], values[k]));
    } else if (values[k] != 0) {
      texts.push_back(names[k]);
    }
  }
  return texts.empty() ? "no label" : fmt::format("{}", fmt::join(texts, ", "));
}

class Auditor {
 public:
  Auditor(Registry& registry, const AuditOptions& options)
      : registry_(registry), options_(options) {}

  Audit run() {
    open_all();
    for (size_t i = 0; i < splits_.size(); ++i) read(i);
    find_duplicates();
    if (options_.thumbnails > 0) draw_all();
    finish_statistics();
    result_.suggestions = suggestions(result_);
    for (std::string& line : forms_) result_.suggestions.push_back(std::move(line));
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::vector<NamedSplit> opened_with(int64_t side) const {
    return open_splits(registry_, options_.source, options_.parameters, options_.seed,
                       {1, 0, side, side});
  }

  void open_all() {
    splits_ = opened_with(measured_side);
    for (const auto& [name, dataset] : splits_) {
      result_.splits.push_back(begin_split(name, *dataset, size_t(dataset->class_count())));
      all_ += dataset->size();
    }
    result_.type = splits_[0].dataset->type_name();
    result_.task = splits_[0].dataset->task();
    result_.class_names = splits_[0].dataset->class_names();
  }

  void read(size_t split) {
    const Dataset& dataset = *splits_[split].dataset;
    std::vector<SeenSample> seen(size_t(dataset.size()));
    std::vector<PixelSums> sums(static_cast<size_t>(threads()));
    parallel_for(dataset.size(), threads(), [&](int64_t index, int thread) {
      seen[size_t(index)] = look_at(dataset, split, index, sums[size_t(thread)]);
      if (thread == 0 && options_.progress) options_.progress(done_, all_);
    });
    if (split == 0) {
      for (const PixelSums& one : sums) sums_.add(one);
      choose_thumbnails(seen);
    }
    summarize(split, seen);
  }

  SeenSample look_at(const Dataset& dataset, size_t split, int64_t index, PixelSums& sums) {
    thread_local std::vector<float> pixels;
    pixels.resize(size_t(element_count(dataset.shape())));
    SeenSample seen;
    float label = -1;
    const auto stored = dataset.describe(index, &seen.reason);
    if (stored) seen.stored = *stored;
    if (seen.reason.empty() &&
        dataset.get(index, 0, pixels.data(), &label, &seen.reason) == SampleStatus::good) {
      seen.good = true;
      seen.label = static_cast<int64_t>(label);
      if (split == 0) sums.add(pixels, dataset.shape().c);
    }
    ++done_;
    return seen;
  }

  // The first of each class.
  void choose_thumbnails(const std::vector<SeenSample>& seen) {
    std::vector<int> left(result_.class_names.size(), 0);
    const size_t shown = std::min(left.size(), max_shown_classes);
    const auto each = static_cast<int>(few_thumbnails / std::max<size_t>(1, shown));
    std::fill_n(left.begin(), shown, std::min(options_.thumbnails, std::max(1, each)));
    for (size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i].good || left[size_t(seen[i].label)]-- <= 0) continue;
      const auto index = static_cast<int64_t>(i);
      result_.thumbnails.push_back({seen[i].label, splits_[0].dataset->sample_name(index), {}});
      shown_.push_back(index);
    }
  }

  void summarize(size_t number, const std::vector<SeenSample>& seen) {
    SplitAudit& split = result_.splits[number];
    const Dataset& dataset = *splits_[number].dataset;
    std::vector<int64_t> sides;
    SampleCounter counter(dataset, split);
    Remarks remarks;
    for (size_t i = 0; i < seen.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      if (!seen[i].good) {
        split.bad.push_back({dataset.sample_name(index), seen[i].reason});
        continue;
      }
      for (const std::string& remark : seen[i].stored.remarks) remarks.add(remark, index);
      const StoredSample& stored = seen[i].stored;
      counter.add(index, seen[i].label);
      split.bytes += stored.bytes;
      ++split.formats[stored.format.empty() ? "not known" : stored.format];
      add_size(stored, split, sides);
      if (stored.bytes > 0) samples_of_[stored.content].push_back({number, index});
    }
    if (number == 0 && result_.task == TANDEM_TASK_CLASSES) {
      forms_ = class_forms(seen, result_.class_names);
    }
    set_sides(split, std::move(sides));
    split.remarks = dataset.remarks();
    for (Remark& one : remarks.list()) split.remarks.push_back(std::move(one));
    for (Remark& one : split.remarks) one.example = dataset.sample_name(one.first);
  }

  Duplicate duplicate(const SampleId& a, const SampleId& b) const {
    const auto split = [&](const SampleId& p) { return splits_[p.split].name; };
    const auto name = [&](const SampleId& p) {
      return splits_[p.split].dataset->sample_name(p.index);
    };
    const auto class_name = [&](const SampleId& p) {
      return label_text(*splits_[p.split].dataset, result_.class_names, p.index);
    };
    return {split(a), name(a), split(b), name(b), class_name(a), class_name(b), a.index, {}};
  }

  void find_duplicates() {
    for (const auto& [content, same] : samples_of_) {
      for (size_t i = 1; i < same.size(); ++i) {
        // A sample of a later split against one of the first, which training reads.
        const Duplicate one = duplicate(same[0], same[i]);
        if (same[i].split != same[0].split) {
          result_.leaks.push_back(one);
        } else if (one.class_name != one.other_class) {
          result_.conflicts.push_back(one);
        } else {
          ++result_.repeated;
        }
      }
    }
    const auto by_name = [](const Duplicate& a, const Duplicate& b) {
      return std::tie(a.name, a.other_name) < std::tie(b.name, b.other_name);
    };
    std::sort(result_.leaks.begin(), result_.leaks.end(), by_name);
    std::sort(result_.conflicts.begin(), result_.conflicts.end(), by_name);
  }

  // The pictures of the page: the thumbnails, and those of doubled images, which both samples have.
  void draw_all() {
    const std::vector<NamedSplit> splits = opened_with(thumbnail_side);
    parallel_for(static_cast<int64_t>(shown_.size()), threads(), [&](int64_t i, int) {
      const auto at = size_t(i);
      result_.thumbnails[at].pixels = drawn(*splits[0].dataset, shown_[at]);
    });
    std::erase_if(result_.thumbnails, [](const Thumbnail& one) { return one.pixels.empty(); });
    for (auto* all : {&result_.leaks, &result_.conflicts}) {
      for (size_t i = 0; i < std::min(all->size(), shown_duplicates); ++i) {
        const auto is_of = [&](const NamedSplit& split) { return split.name == all->at(i).split; };
        const auto found = std::find_if(splits.begin(), splits.end(), is_of);
        if (found != splits.end()) all->at(i).pixels = drawn(*found->dataset, all->at(i).index);
      }
    }
  }

  // Empty for a sample that is damaged or gone by now.
  [[nodiscard]] static std::vector<unsigned char> drawn(const Dataset& dataset, int64_t index) {
    if (index >= dataset.size()) return {};
    std::vector<float> pixels(size_t(element_count(dataset.shape())));
    float label = 0;
    std::string reason;
    const bool good = dataset.get(index, 0, pixels.data(), &label, &reason) == SampleStatus::good;
    return good ? to_rgb(pixels, dataset.shape().c) : std::vector<unsigned char>();
  }

  [[nodiscard]] int threads() const {
    return options_.threads > 0 ? options_.threads : processor_count();
  }

  void finish_statistics() {
    std::stable_sort(result_.thumbnails.begin(), result_.thumbnails.end(),
                     [](const Thumbnail& a, const Thumbnail& b) {
                       return std::tie(a.label, a.name) < std::tie(b.label, b.name);
                     });
    const auto count = static_cast<double>(std::max<int64_t>(1, sums_.pictures));
    for (size_t c = 0; c < sums_.values.size(); ++c) {
      const double mean = sums_.values[c] / count;
      result_.mean.push_back(mean);
      result_.deviation.push_back(std::sqrt(std::max(0.0, sums_.squares[c] / count - mean * mean)));
    }
  }

  std::vector<std::string> forms_;
  Registry& registry_;
  const AuditOptions& options_;
  Audit result_;
  std::vector<NamedSplit> splits_;
  std::unordered_map<uint64_t, std::vector<SampleId>> samples_of_;  // by content
  PixelSums sums_;
  std::vector<int64_t> shown_;  // the samples of the thumbnails
  std::atomic<int64_t> done_ = 0;
  int64_t all_ = 0;
};

}  // namespace

Audit audit(Registry& registry, const AuditOptions& options) {
  return Auditor(registry, options).run();
}

}  // namespace tandem
