// The tolerance of check_lossless: how far one-device runs differ that only sum the batch in
// another order. Which of these runs is nearest to a strategy shows in which order the strategy
// sums.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/lossless_run.h"

namespace tandem::bench {

// A one-device run that sums in another order than the reference.
struct ReorderedRun {
  std::string name;  // "2 threads", "in 2 parts", "rows reversed"
  LosslessRun run;
};

// Those that the net, according to `reference` (the weights after `run`), and the batch allow:
// other numbers of threads; the batch in two parts, and in as many as there are devices; rows in
// the opposite order.
[[nodiscard]] std::vector<ReorderedRun> reordered_runs(const LosslessRun& run,
                                                       const LosslessWeights& reference,
                                                       const std::vector<int>& devices);

class OneDeviceRuns {
 public:
  void add(std::string name, LosslessWeights weights);
  // The nearest one's name and difference, if it is nearer than `reference`; else that.
  [[nodiscard]] std::pair<std::string, double> nearest(
      const LosslessWeights& weights, std::pair<std::string, double> reference) const;

 private:
  struct Run {
    std::string name;
    LosslessWeights weights;  // without the initial ones, which are the same in all
  };
  std::vector<Run> runs_;
};

// A strategy may differ by this many times the largest difference of a reordered run.
constexpr double tolerance_factor = 10;

[[nodiscard]] inline double tolerance_of(double reordered_difference) {
  return tolerance_factor * reordered_difference;
}

// Whether the tolerance excludes a strategy that does not train at all, which differs by 1.
[[nodiscard]] inline bool gives_verdict(double reordered_difference) {
  return reordered_difference > 0 && tolerance_of(reordered_difference) < 1;
}

}  // namespace tandem::bench
