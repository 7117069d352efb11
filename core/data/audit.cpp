#include "core/data/audit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/parallel.h"
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

// The result for one sample; merged in the order of samples.
struct Seen {
  bool good = false;
  int64_t label = -1;
  std::string reason;
  StoredSample stored;
};

// The sum of the values and that of their squares. Neighbors are summed side by side, so that a
// compiler may do so in a vector.
std::pair<double, double> sums_of(const float* values, int64_t count) {
  constexpr int64_t lanes = 64, block = 32 * lanes;  // short enough for float
  double sum = 0, square = 0;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t end = std::min(count, begin + block);
    std::array<float, lanes> one{}, two{};
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const float value = values[i + lane];
        one[size_t(lane)] += value;
        two[size_t(lane)] += value * value;
      }
    }
    for (; i < end; ++i) {
      one[0] += values[i];
      two[0] += values[i] * values[i];
    }
    for (const float part : one) sum += part;
    for (const float part : two) square += part;
  }
  return {sum, square};
}

// Sums over pictures of the mean of each channel and of its squares.
struct Sums {
  int64_t pictures = 0;
  std::vector<double> values, squares;

  void add(const std::vector<float>& pixels, int64_t channels) {
    const auto plane = static_cast<int64_t>(pixels.size()) / channels;
    values.resize(size_t(channels));
    squares.resize(size_t(channels));
    for (int64_t c = 0; c < channels; ++c) {
      const auto [sum, square] = sums_of(pixels.data() + c * plane, plane);
      values[size_t(c)] += sum / static_cast<double>(plane);
      squares[size_t(c)] += square / static_cast<double>(plane);
    }
    ++pictures;
  }
  void add(const Sums& other) {
    values.resize(std::max(values.size(), other.values.size()));
    squares.resize(values.size());
    for (size_t c = 0; c < other.values.size(); ++c) {
      values[c] += other.values[c];
      squares[c] += other.squares[c];
    }
    pictures += other.pictures;
  }
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

SplitAudit begin_split(const std::string& name, const Dataset& dataset, size_t classes) {
  SplitAudit split;
  split.name = name;
  split.samples = dataset.size();
  split.notes = dataset.notes();
  split.class_counts.assign(classes, 0);
  return split;
}

// Counts a sample: for its class, or for each of its labels.
class SampleCounter {
 public:
  SampleCounter(const Dataset& dataset, SplitAudit& split)
      : dataset_(dataset), split_(split), values_(split.class_counts.size()) {
    if (dataset.task() == TANDEM_TASK_VALUES) split.ranges.resize(values_.size());
  }
  void add(int64_t index, int64_t label) {
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

 private:
  const Dataset& dataset_;
  SplitAudit& split_;
  std::vector<float> values_;
  int64_t count_ = 0;
};

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
    std::vector<Seen> seen(size_t(dataset.size()));
    std::vector<Sums> sums(static_cast<size_t>(threads()));
    parallel_for(dataset.size(), threads(), [&](int64_t index, int thread) {
      seen[size_t(index)] = look_at(dataset, split, index, sums[size_t(thread)]);
      if (thread == 0 && options_.progress) options_.progress(done_, all_);
    });
    if (split == 0) {
      for (const Sums& one : sums) sums_.add(one);
      choose_thumbnails(seen);
    }
    summarize(split, seen);
  }

  Seen look_at(const Dataset& dataset, size_t split, int64_t index, Sums& sums) {
    thread_local std::vector<float> pixels;
    pixels.resize(size_t(element_count(dataset.shape())));
    Seen seen;
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
  void choose_thumbnails(const std::vector<Seen>& seen) {
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

  void summarize(size_t number, const std::vector<Seen>& seen) {
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
    if (number == 0) note_forms(seen);
    set_sides(split, std::move(sides));
    split.remarks = dataset.remarks();
    for (Remark& one : remarks.list()) split.remarks.push_back(std::move(one));
    for (Remark& one : split.remarks) one.example = dataset.sample_name(one.first);
  }

  // A class whose files have a form or a size that no file of another class has: the net could tell
  // it by that alone.
  void note_forms(const std::vector<Seen>& seen) {
    if (result_.task != TANDEM_TASK_CLASSES) return;
    using Text = std::string (*)(const StoredSample&);
    const Text form = [](const StoredSample& one) {
      const char* color = one.channels == 1   ? "gray "
                          : one.channels == 3 ? "color "
                          : one.channels == 4 ? "four-channel "
                                              : "";
      return one.format.empty() ? "" : color + one.format;
    };
    const Text size = [](const StoredSample& one) {
      return one.width > 0 ? fmt::format("files of {}x{} pixels", one.width, one.height) : "";
    };
    constexpr int64_t few = 4;
    for (const Text text : {form, size}) {
      std::map<std::string, std::map<int64_t, int64_t>> classes_of;  // and their numbers of files
      std::map<int64_t, std::set<std::string>> texts_of;
      for (const Seen& one : seen) {
        if (!one.good) continue;
        ++classes_of[text(one.stored)][one.label];
        texts_of[one.label].insert(text(one.stored));
      }
      for (const auto& [what, classes] : classes_of) {
        const auto& [label, files] = *classes.begin();
        if (what.empty() || classes.size() > 1 || texts_of.size() < 2 || files < few) continue;
        if (texts_of.at(label).size() > 1) continue;
        forms_.push_back(
            fmt::format("class '{}' has {} alone, and no other class has any: a net may learn that "
                        "and not what the images show",
                        result_.class_names[size_t(label)], what));
        break;
      }
    }
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
  Sums sums_;
  std::vector<int64_t> shown_;  // the samples of the thumbnails
  std::atomic<int64_t> done_ = 0;
  int64_t all_ = 0;
};

}  // namespace

Audit audit(Registry& registry, const AuditOptions& options) {
  return Auditor(registry, options).run();
}

namespace {

// Why nothing can be learned from the training images; "" if something can.
std::string why_nothing_is_learned(const Audit& audit) {
  const SplitAudit& train = audit.splits[0];
  const auto used = std::count_if(train.class_counts.begin(), train.class_counts.end(),
                                  [](int64_t count) { return count > 0; });
  if (used == 1) return "all training images are of one class";
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

std::string image_count(size_t count) {
  return fmt::format("{} image{}", count, count == 1 ? "" : "s");
}

}  // namespace tandem
