// Checks a data set before training: reads every sample of every split once and reports damaged and
// duplicate samples, sizes and statistics. Writes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/data/bad_samples.h"
#include "core/data/dataset.h"

namespace tandem {

struct AuditOptions {
  std::string source;
  std::map<std::string, std::string> parameters;  // of the data set
  uint64_t seed = 1;
  int threads = 0;  // 0: as many as there are cores
  // At most so many of each class of the first split, fewer of many classes; and of some doubled
  // images.
  int thumbnails = 0;
  std::function<void(int64_t done, int64_t all)> progress;  // may be empty; called by one thread
};

constexpr int64_t thumbnail_side = 128;

// thumbnail_side squared pixels, R,G,B.
struct Thumbnail {
  int64_t label = 0;
  std::string name;
  std::vector<unsigned char> pixels;
};

// Of a number that samples have.
struct ValueRange {
  double least = 0, mean = 0, most = 0;
};

struct SplitAudit {
  std::string name;  // train, val, test
  int64_t samples = 0;
  // Samples of each class, or with each label; without damaged samples. Zeros for numbers.
  std::vector<int64_t> class_counts;
  std::vector<ValueRange> ranges;  // of numbers
  int64_t without_label = 0;       // samples that have none of several labels
  std::vector<BadSample> bad;
  std::vector<Remark> remarks;             // of samples that are used all the same
  std::map<std::string, int64_t> formats;  // "JPEG" -> count
  std::map<int, int64_t> channels;         // as stored; 0: not known
  // Shorter sides in pixels; zeros: not known.
  int64_t min_side = 0, median_side = 0, max_side = 0;
  int64_t bytes = 0;
  std::string notes;
};

// Two samples with the same bytes.
struct Duplicate {
  std::string split, name, other_split, other_name;
  std::string class_name, other_class;
  int64_t index = 0;                  // of the first in its split
  std::vector<unsigned char> pixels;  // as of a Thumbnail; empty: not read
};

struct Audit {
  std::string type;  // the data set's
  int64_t task = TANDEM_TASK_CLASSES;
  std::vector<std::string> class_names;
  std::vector<SplitAudit> splits;
  std::vector<Duplicate> leaks;      // in two splits
  std::vector<Duplicate> conflicts;  // in one split, as two classes
  int64_t repeated = 0;              // further copies in one split, of one class
  // Of B, G, R (or gray), 0 to 255, over the centres of the training pictures, shrunk to 64x64.
  std::vector<double> mean, deviation;
  std::vector<Thumbnail> thumbnails;
  std::vector<std::string> suggestions;
};

// Error if the data set cannot be opened.
[[nodiscard]] Audit audit(Registry& registry, const AuditOptions& options);

// Advice for the user on the findings; audit() calls it.
[[nodiscard]] std::vector<std::string> suggestions(const Audit& audit);

// Damaged samples by reason, the most frequent first.
struct ReasonCount {
  std::string reason;
  int64_t count = 0;
  std::string example;
};
[[nodiscard]] std::vector<ReasonCount> by_reason(const std::vector<BadSample>& bad);

// What is known of the data sets of some splits, the first of them for training, without reading
// pixels: the images of each class, and sizes and formats of some evenly spaced samples.
struct KnownSplit {
  std::string name;
  const Dataset* dataset = nullptr;
};
[[nodiscard]] Audit outline(const std::vector<KnownSplit>& splits, int64_t described_samples);

// "1 image", "2 images"
[[nodiscard]] std::string image_count(size_t count);

}  // namespace tandem
