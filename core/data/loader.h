// Prefetch: a ring of batches in pinned memory, filled by several threads, delivered in order. A
// slow file delays one slot of the ring, not the step, as long as the ring is ahead. What a batch
// holds is a pure function of its number: never of threads, devices or the ring's length.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/shape.h"
#include "core/data/dataset.h"
#include "core/data/targets.h"
#include "include/tandem/observer.h"
#include "plugins/abi.h"

namespace tandem {

// One batch in memory: tandem_step, then labels, then pixels, then what else the net is fed with,
// each on a multiple of 64 bytes. All are floats; pixels may be bytes.
struct BatchLayout {
  int64_t rows = 0;
  Shape sample;
  int64_t sample_bytes = 0;  // of the pixels of one row
  int64_t label_offset = 0, data_offset = 0, bytes = 0;
  std::vector<Shape> more;  // of one sample each
  std::vector<int64_t> more_offsets;
};
[[nodiscard]] BatchLayout make_batch_layout(int64_t rows, const Shape& sample,
                                            const std::vector<Shape>& more = {},
                                            PixelForm pixels = PixelForm::floats);

constexpr int ring_slots = 3;

struct LoaderOptions {
  int64_t batch = 1;
  int64_t first_batch = 0;   // where to begin: the step, on resume
  int64_t batch_count = -1;  // how many; -1: endless
  bool wrap = true;  // training: positions run on into the next epoch. False: the last batch may be
                     // partial, and rows beyond the data have label -1
  bool shuffle = true;
  uint64_t seed = 1;
  int slots = ring_slots;
  int threads = 0;                // 0: one for every two cores, at least 1
  double bad_share_limit = 0.05;  // Error with the list when more of the samples seen (at least
                                  // 200), or all of a batch, are damaged. 0: at the first; 1:
                                  // never, for evaluation: then a batch may hold no sample at all
  bool balanced = false;          // every epoch shows every class as often as the others: rare ones
                                  // several times, others in part. Needs shuffle
  TargetOptions targets;          // wanted: after all else, a weight for each class and row
  PixelForm pixels = PixelForm::floats;     // bytes: nothing is mixed
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
  int64_t epoch = 0;    // of its first row
  int64_t samples = 0;  // rows that hold one (label >= 0)
  std::byte* memory =
      nullptr;  // laid out as BatchLayout; the tandem_step is the caller's to fill in
  int slot = -1;
};

class Loader {
 public:
  // Gives and takes back pinned memory (TANDEM_MEMORY_PINNED of the machine, or malloc in tests).
  struct Allocator {
    std::function<void*(int64_t)> allocate;
    std::function<void(void*)> free;
  };
  // The data set outlives the loader.
  Loader(const Dataset& dataset, const LoaderOptions& options, const Allocator& allocator);
  ~Loader();

  // The next batch in order; waits until it is there. Throws what a decoder thread met (a batch
  // whose samples are all damaged, too many damaged ones). Must not be called beyond batch_count.
  [[nodiscard]] Batch next();
  // Gives the batch's slot back to the ring (when its copies are done).
  void release(const Batch& batch);

  [[nodiscard]] const BatchLayout& layout() const;
  [[nodiscard]] double waited_seconds() const;               // in next(), since the loader was made
  [[nodiscard]] std::vector<LoadSpan> spans() const;         // of the timed batches, so far
  [[nodiscard]] std::vector<BadSample> bad_samples() const;  // each once, by name

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Mean of each channel over at most `limit` evenly spaced samples, as get() gives them.
[[nodiscard]] std::vector<double> channel_means(const Dataset& dataset, int64_t limit);

}  // namespace tandem
