// The content of the rows of a batch: samples, augmented and mixed, and labels. A pure function of
// the batch's number and the row, whatever thread fills it.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "core/data/loader/loader.h"
#include "core/data/loader/sample_order.h"

namespace tandem {

class BatchFiller {
 public:
  using BadRows = std::vector<std::pair<int64_t, BadSample>>;

  // Rows that a thread fills at a time: few, so that threads share a batch, but more than one, so
  // that tiny images do not cost a lock each. Even, as rows are mixed in pairs.
  static constexpr int64_t rows_together = 4;

  // Throws Error for options that do not fit each other or the data set, which outlives it.
  BatchFiller(const Dataset& dataset, const LoaderOptions& options);

  [[nodiscard]] const BatchLayout& layout() const { return layout_; }
  [[nodiscard]] int64_t epoch(int64_t number) const {
    return order_.epoch(number * options_.batch);
  }
  // Where an evaluation ends, the last batch is not full.
  [[nodiscard]] int64_t rows_with_data(int64_t number) const;
  // Rows [first, last) of batch `number`, laid out as layout(); `first` is a multiple of
  // rows_together. Returns the damaged ones; ends early when `stopping` becomes true. Thread-safe.
  [[nodiscard]] BadRows fill(std::byte* memory, int64_t number, int64_t first, int64_t last,
                             const std::atomic<bool>& stopping) const;
  // "value 3 of sample 57 ('cat/1.jpg') is infinite": the first of the batch that is no finite
  // number; "": all are.
  [[nodiscard]] std::string not_finite(int64_t number) const;

 private:
  struct Row;
  [[nodiscard]] Row row_of(std::byte* memory, int64_t row) const;
  // Calls function(bytes of the row's picture); where a batch holds floats they are made of them.
  template <class Function>
  void with_bytes(const Row& row, const Function& function) const;
  [[nodiscard]] SampleStatus get(const Row& row, int64_t index, uint64_t seed,
                                 std::string* reason) const;
  void clear(const Row& row) const;
  void write_targets(const Row& row, int64_t sample) const;
  [[nodiscard]] bool is_read(int64_t first, int64_t last) const;
  void mix(std::byte* memory, int64_t number, int64_t first, int64_t last) const;

  const Dataset& dataset_;
  LoaderOptions options_;
  SampleOrder order_;
  BatchLayout layout_;
};

}  // namespace tandem
