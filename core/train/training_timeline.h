// The trace of a few batches of a training run, with the loader's threads beside the streams, as
// Chrome's trace viewer reads it. The first batches are slower and are left out, except in a short
// run.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/data/loader.h"
#include "core/schedule/report/report.h"
#include "core/train/session.h"

namespace tandem {

class TrainingTimeline {
 public:
  // `first` and `end`: the micro-batches of the run. `file` is empty where nothing is written.
  TrainingTimeline(Session& session, int64_t first, int64_t end, std::string file);

  // The batches that are traced: [begin, end).
  [[nodiscard]] int64_t begin() const { return begin_; }
  [[nodiscard]] int64_t end() const;
  // Asks the loader for the times of these batches and of those that are decoded meanwhile.
  void ask(LoaderOptions* loading) const;
  // Compares the host's clock with the machine's. Called while nothing else is on the stream.
  void compare_clocks();
  // Takes the trace of a batch that is done, and writes the file after the last one.
  void add(int64_t batch, const Loader& loader);
  // What was traced, if it was not written yet.
  void write(const Loader& loader);

 private:
  [[nodiscard]] std::vector<HostSpan> loading_spans(const Loader& loader) const;

  Session& session_;
  int64_t begin_;
  std::string file_;
  std::vector<TraceEvent> events_;
  // The same moment on the host's clock and on the machine's.
  std::pair<std::chrono::steady_clock::time_point, double> same_time_;
};

}  // namespace tandem
