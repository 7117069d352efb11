// The one-device runs that a strategy's difference is held against, for check_lossless: each only
// sums the batch in another order. Which of them is nearest to a strategy tells whose order of
// summation is its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/lossless_run.h"

namespace tandem::bench {

struct Yardstick {
  std::string name;  // "2 threads", "in 2 parts", "rows reversed"
  LosslessRun run;
};

// Those that the net allows, of which `reference` (after `run`) tells, and the batch: other numbers
// of threads; the batch in two parts, and in as many as there are devices; rows in the opposite
// order.
[[nodiscard]] std::vector<Yardstick> yardsticks_of(const LosslessRun& run,
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
    LosslessWeights weights;  // without the start, which is the same in all
  };
  std::vector<Run> runs_;
};

// How often the largest difference of a yardstick a strategy may differ by.
constexpr double allowed_yardsticks = 10;

// Whether a strategy can be told from one that does not train at all, which differs by 1.
[[nodiscard]] inline bool gives_verdict(double yardstick) {
  return yardstick > 0 && allowed_yardsticks * yardstick < 1;
}

}  // namespace tandem::bench
