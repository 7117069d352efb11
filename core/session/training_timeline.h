// The trace of a few batches of a training run, of all ranks, with the loader's threads beside the
// streams, as Chrome's trace viewer reads it. The first batches are slower and are left out, except
// in a short run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/loader/loader.h"
#include "core/session/rank_traces.h"
#include "core/session/session.h"

namespace tandem {

class TrainingTimeline {
 public:
  // `first` and `end`: the micro-batches of the run. `file` is empty on ranks other than 0.
  TrainingTimeline(Session& session, int64_t first, int64_t end, std::string file);

  // The batches that are traced: [begin, end).
  [[nodiscard]] int64_t begin() const { return begin_; }
  [[nodiscard]] int64_t end() const;
  // Asks the loader for the times of these batches and of those that are decoded meanwhile.
  void ask(LoaderOptions* loading) const;
  // Compares the host's clock with the machine's and with those of other ranks; called by all,
  // while nothing else is on the stream.
  void compare_clocks();
  // Takes the trace of a batch that is done, and writes the file after the last one. This and
  // write() are called by all ranks.
  void add(int64_t batch, const Loader& loader);
  // What was traced, if it was not written yet.
  void write(const Loader& loader);
  // Once after that: a line for each pass of a layer that this process found slow. None of a run of
  // fewer than four batches: the first one warms up, and any of the others may have been disturbed.
  [[nodiscard]] std::vector<std::string> take_slow_passes() { return std::exchange(slow_, {}); }

 private:
  [[nodiscard]] std::vector<HostSpan> loading_spans(const Loader& loader) const;
  void find_slow_passes();

  Session& session_;
  int64_t first_, begin_;
  std::string file_;
  std::vector<TraceEvent> events_;
  std::vector<std::string> slow_;
  std::optional<MachineClock> clock_;
  ClockShift shift_;
};

}  // namespace tandem
