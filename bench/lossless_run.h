// A few steps of a net on one standing batch, with dropout of its own in each step, and the weights
// behind them. What check_lossless compares.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/lossless_ways.h"
#include "core/train/session.h"

namespace tandem::bench {

struct LosslessRun {
  std::string devices = "cpu:1";
  Way way{"sequential", "", {}};
  int threads = 1;
  int64_t batch = 8;
  int steps = 20;
  float rate = 1e-4F;     // SGD with momentum, so that the solver keeps something
  bool reversed = false;  // the batch's rows in the opposite order: the same sums in another one
};

struct LosslessWeights {
  std::vector<WeightArray> arrays;
  std::vector<float> start, end;
  bool draws_random_numbers = false;  // by the row's position, which `reversed` would change
};

// What the strategy, the net or the devices do not allow, before anything has run.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Refused, and Error for what fails later.
[[nodiscard]] LosslessWeights run_lossless(Registry& registry, const NetDefinition& net,
                                           const LosslessRun& run);

// The largest difference of an array relative to its largest change since the start; infinity if
// one of them is not finite.
[[nodiscard]] double difference(const LosslessWeights& one, const LosslessWeights& other);

// Of this program, the library and all modules: results of another build are another's.
[[nodiscard]] std::string build_id();

}  // namespace tandem::bench
