// Prefetch: a ring of batches in pinned memory, filled by several threads and delivered in order. A
// slow file delays one slot of the ring, but no step while other batches are ready. The content of
// a batch is a pure function of its number, whatever the threads, devices and slots are.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/numbers/interval.h"
#include "core/base/numbers/shape.h"
#include "core/data/bad_samples.h"
#include "core/data/dataset.h"
#include "core/data/loader/batch_layout.h"
#include "core/data/targets.h"
#include "include/tandem/observer.h"
#include "plugins/abi.h"

namespace tandem {

// Throws Error for a number of threads that cannot be (--decode-threads).
void require_decode_threads(int threads);

struct LoaderOptions {
  int64_t batch = 1;
  int64_t first_batch = 0;   // after resuming: the next one
  int64_t batch_count = -1;  // how many; -1: endless
  // Whether a batch may continue in the next epoch, for training. If not, the last batch may be
  // partial; its other rows have the label -1.
  bool wrap = true;
  bool shuffle = true;
  uint64_t seed = 1;
  int slots = ring_slots;
  int threads = 0;                       // 0: one for every two cores, at least 2
  double bad_share_limit = 0.05;         // see BadSamples; 1 for evaluation
  bool balanced = false;                 // see SampleOrder; needs shuffle
  TargetOptions targets;                 // wanted: the last input is a weight for each class
  PixelForm pixels = PixelForm::floats;  // bytes cannot be mixed
  // The rows of a batch that are read; empty: all. Others get the label NaN, but for those that
  // BatchFiller fills together with one that is read.
  std::vector<Interval> rows;
  int64_t timed_from = 0, timed_count = 0;  // batches for Loader::spans()
};

// When a decoder thread worked on rows of a batch.
struct LoadSpan {
  int thread = 0;
  int64_t batch = 0;
  std::chrono::steady_clock::time_point begin, end;
};

struct Batch {
  int64_t number = 0;
  int64_t epoch = 0;            // of its first row
  int64_t samples = 0;          // rows that hold one (label >= 0), or are not read
  std::byte* memory = nullptr;  // as in BatchLayout; the caller writes the tandem_step
  int slot = -1;
};

class Loader {
 public:
  // For pinned memory (TANDEM_MEMORY_PINNED of the machine, or malloc in tests).
  struct Allocator {
    std::function<void*(int64_t)> allocate;
    std::function<void(void*)> free;
  };
  // The data set outlives the loader.
  Loader(const Dataset& dataset, const LoaderOptions& options, const Allocator& allocator);
  ~Loader();

  // Waits for the next batch in order. Throws the Error of a decoder thread, or of BadSamples. Must
  // not be called after batch_count batches.
  [[nodiscard]] Batch next();
  // Returns the batch's slot to the ring, when its copies are done.
  void release(const Batch& batch);

  [[nodiscard]] const BatchLayout& layout() const;
  [[nodiscard]] double waited_seconds() const;               // in next(), all calls together
  [[nodiscard]] std::vector<LoadSpan> spans() const;         // of the timed batches, so far
  [[nodiscard]] std::vector<BadSample> bad_samples() const;  // each once, by name

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
