#include "bench/lossless_tolerance.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace tandem::bench {

std::vector<ReorderedRun> reordered_runs(const LosslessRun& run, const LosslessWeights& reference,
                                         const std::vector<int>& devices) {
  std::vector<ReorderedRun> result;
  for (const int threads : {2, 3, 4}) {
    result.push_back({fmt::format("{} threads", threads), run});
    result.back().run.threads = threads;
  }
  if (reference.adds_up_samples) {
    std::set<int> parts{2};
    parts.insert(devices.begin(), devices.end());
    for (const int count : parts) {
      if (count < 2 || run.batch % count != 0) continue;
      result.push_back({fmt::format("in {} parts", count), run});
      result.back().run.parts = count;
    }
  }
  // Random numbers depend on the row's position.
  if (!reference.draws_random_numbers) {
    result.push_back({"rows reversed", run});
    result.back().run.reversed = true;
  }
  return result;
}

void OneDeviceRuns::add(std::string name, LosslessWeights weights) {
  weights.start = {};
  runs_.push_back({std::move(name), std::move(weights)});
}

std::pair<std::string, double> OneDeviceRuns::nearest(
    const LosslessWeights& weights, std::pair<std::string, double> reference) const {
  for (const Run& run : runs_) {
    const double most = difference(weights, run.weights).most;
    if (most < reference.second) reference = {run.name, most};
  }
  return reference;
}

}  // namespace tandem::bench
