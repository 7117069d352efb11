// Runs a few steps of a net on one batch, with other dropout in each step, and returns the weights
// after them, which check_lossless compares.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace tandem::bench {

struct LosslessRun {
  std::string devices = "cpu:1";
  std::string strategy = "sequential";
  StrategyOptions options;  // of the strategy
  int threads = 1;
  int64_t batch = 8;
  int steps = 20;
  float rate = 1e-4F;     // SGD with momentum, so that the solver keeps something
  bool reversed = false;  // the batch's rows in the opposite order: the same sums in another one
  int64_t parts = 1;  // the batch in equal parts, one after the other, for each update (iter_size)
};

struct LosslessWeights {
  std::vector<WeightArray> arrays;
  std::vector<float> start, end, momentum;
  int steps = 0;
  bool draws_random_numbers = false;  // by the row's position, which `reversed` would change
  bool adds_up_samples = true;        // the gradient is the mean of its parts' gradients
};

// The strategy, the net or the devices do not allow the run; nothing has run.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Refused, and Error for what fails later.
[[nodiscard]] LosslessWeights run_lossless(Registry& registry, const NetDefinition& net,
                                           const LosslessRun& run);

struct Difference {
  double most = 0;    // infinity if something is not finite
  std::string where;  // "conv2.bias", or "momentum of conv2.bias"; "" if nothing differs
};
// The largest difference of an array: of weights relative to the largest change of the array since
// the start, of momentum relative to its largest value. The rounding of each update to float32 (at
// most an ulp per step) does not count: for a bias of 0.1 that has moved by 50 ulps it would be
// 0.02, however near the gradients are. Momentum shows gradients without that rounding.
[[nodiscard]] Difference difference(const LosslessWeights& one, const LosslessWeights& other);

// Of this program, the library and all modules; results are valid for one build.
[[nodiscard]] std::string build_id();

}  // namespace tandem::bench
