#include "core/data/loader/batch_filler.h"
#include "core/data/dataset_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

// The net's inputs besides images and labels; class targets are the last one.
std::vector<Shape> further_shapes(const Dataset& dataset, const LoaderOptions& options) {
  std::vector<Shape> shapes = dataset.more_shapes();
  if (options.targets.wanted) shapes.push_back({1, dataset.class_count(), 1, 1});
  return shapes;
}

}  // namespace

struct BatchFiller::Row {
  TargetRow image;           // without a target where none is wanted, without pixels for bytes
  uint8_t* bytes = nullptr;  // of the image; null where pixels are floats
  std::vector<float*> more;  // the data set's other inputs
};

BatchFiller::BatchFiller(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset),
      options_(options),
      order_(dataset.size(), options.seed, options.shuffle,
             options.balanced ? class_labels(dataset) : std::vector<int64_t>{}),
      layout_(make_batch_layout(options.batch, dataset.shape(), further_shapes(dataset, options),
                                options.pixels)) {
  check_targets(options.targets, dataset.class_count());
  if (options.pixels == PixelForm::floats) return;
  if (!dataset.has_bytes()) throw error("pixels as bytes: {}", dataset.why_no_bytes());
  if (options.pixels == PixelForm::bytes && options.targets.mixes()) {
    throw error("pixels as bytes cannot be mixed: floats made of them can");
  }
}

int64_t BatchFiller::rows_with_data(int64_t number) const {
  if (options_.wrap) return options_.batch;
  return std::clamp<int64_t>(dataset_.size() - number * options_.batch, 0, options_.batch);
}

BatchFiller::Row BatchFiller::row_of(std::byte* memory, int64_t row) const {
  const auto at = [&](int64_t offset, int64_t elements) {
    return reinterpret_cast<float*>(memory + offset) + row * elements;
  };
  Row result;
  if (options_.pixels == PixelForm::bytes) {
    result.bytes =
        reinterpret_cast<uint8_t*>(memory + layout_.data_offset) + row * layout_.sample_bytes;
  } else {
    result.image.pixels = at(layout_.data_offset, element_count(layout_.sample));
  }
  result.image.label = at(layout_.label_offset, 1);
  for (size_t i = 0; i < layout_.more.size(); ++i) {
    result.more.push_back(at(layout_.more_offsets[i], element_count(layout_.more[i])));
  }
  if (options_.targets.wanted) {
    result.image.target = result.more.back();
    result.more.pop_back();
  }
  return result;
}

template <class Function>
void BatchFiller::with_bytes(const Row& row, const Function& function) const {
  if (row.bytes != nullptr) return function(row.bytes);
  thread_local std::vector<uint8_t> bytes;
  bytes.resize(size_t(element_count(layout_.sample)));
  function(bytes.data());
  to_floats(bytes.data(), layout_.sample, dataset_.pixel_scale(), row.image.pixels);
}

SampleStatus BatchFiller::get(const Row& row, int64_t index, uint64_t seed,
                              std::string* reason) const {
  if (options_.pixels == PixelForm::floats) {
    return dataset_.get(index, seed, row.image.pixels, row.image.label, reason);
  }
  SampleStatus status = SampleStatus::good;
  with_bytes(row, [&](uint8_t* bytes) {
    status = dataset_.get_bytes(index, seed, bytes, row.image.label, reason);
  });
  return status;
}

void BatchFiller::clear(const Row& row) const {
  if (options_.pixels == PixelForm::floats) {
    std::fill_n(row.image.pixels, element_count(layout_.sample), 0.0F);
  } else {
    with_bytes(row, [&](uint8_t* bytes) {
      fill_with_means(layout_.sample, dataset_.pixel_scale(), bytes);
    });
  }
  for (size_t i = 0; i < row.more.size(); ++i) {
    std::fill_n(row.more[i], element_count(layout_.more[i]), 0.0F);
  }
  *row.image.label = -1;
}

// `sample`: -1: the row has none.
void BatchFiller::write_targets(const Row& row, int64_t sample) const {
  const int64_t count = dataset_.class_count();
  if (dataset_.task() == TANDEM_TASK_CLASSES) {
    write_target(options_.targets, count, row.image);
    return;
  }
  std::fill_n(row.image.target, count, 0.0F);
  if (sample < 0) return;
  dataset_.targets(sample, row.image.target);
  const auto smoothing = static_cast<float>(options_.targets.smoothing);
  if (smoothing == 0) return;
  for (int64_t k = 0; k < count; ++k) {
    float& target = row.image.target[k];
    target = target * (1 - smoothing) + smoothing / 2;
  }
}

BatchFiller::BadRows BatchFiller::fill(std::byte* memory, int64_t number, int64_t first,
                                       int64_t last, const std::atomic<bool>& stopping) const {
  BadRows bad;
  if (!is_read(first, last)) {
    for (int64_t i = first; i < last; ++i) {
      *row_of(memory, i).image.label = std::numeric_limits<float>::quiet_NaN();
    }
    return bad;
  }
  const int64_t filled = rows_with_data(number);
  for (int64_t i = first; i < last && !stopping; ++i) {
    const Row row = row_of(memory, i);
    int64_t sample = -1;
    if (i >= filled) {
      clear(row);
    } else {
      const int64_t position = number * options_.batch + i;
      const int64_t index = order_.index(position);
      const uint64_t seed = order_.sample_seed(position);
      dataset_.get_more(index, seed, row.more);
      std::string reason;
      if (get(row, index, seed, &reason) == SampleStatus::skipped) {
        bad.emplace_back(i, BadSample{dataset_.sample_name(index), reason});
      } else {
        sample = index;
      }
    }
    if (options_.targets.wanted) write_targets(row, sample);
  }
  if (options_.targets.mixes() && !stopping) mix(memory, number, first, last);
  return bad;
}

std::string BatchFiller::not_finite(int64_t number) const {
  if (options_.pixels != PixelForm::floats) return "";
  std::vector<float> pixels(size_t(element_count(layout_.sample)));
  for (int64_t i = 0; i < rows_with_data(number); ++i) {
    const int64_t position = number * options_.batch + i, index = order_.index(position);
    float label = 0;
    std::string reason;
    static_cast<void>(
        dataset_.get(index, order_.sample_seed(position), pixels.data(), &label, &reason));
    const auto found = std::find_if(pixels.begin(), pixels.end(),
                                    [](float value) { return !std::isfinite(value); });
    if (found == pixels.end()) continue;
    return fmt::format("value {} of sample {} ('{}') is {}", found - pixels.begin(), index,
                       dataset_.sample_name(index),
                       std::isnan(*found) ? "not a number (NaN)" : "infinite");
  }
  return "";
}

bool BatchFiller::is_read(int64_t first, int64_t last) const {
  return options_.rows.empty() ||
         std::any_of(options_.rows.begin(), options_.rows.end(), [&](const Interval& rows) {
           return rows.overlaps({first, last});
         });
}

// A row whose neighbor is damaged or missing stays as it is.
void BatchFiller::mix(std::byte* memory, int64_t number, int64_t first, int64_t last) const {
  for (int64_t i = first; i + 1 < last; i += 2) {
    const TargetRow a = row_of(memory, i).image, b = row_of(memory, i + 1).image;
    if (*a.label < 0 || *b.label < 0) continue;
    mix_rows(options_.targets, layout_.sample, dataset_.class_count(),
             order_.sample_seed(number * options_.batch + i), a, b);
  }
}

}  // namespace tandem
