// What check_lossless counts, and the exit code that follows: `good` only if something was compared
// and everything agrees.
#pragma once

namespace tandem::bench {

constexpr int good = 0, bad = 1, no_verdict = 2;

struct LosslessTally {
  int ran = 0, earlier = 0;  // compared now, and in an earlier call
  int differ = 0;            // of these: more than the tolerance
  int refused = 0;           // by the strategy, the net or the devices
  int failed = 0;            // while running

  [[nodiscard]] int exit_code() const {
    if (differ + failed > 0) return bad;
    return ran + earlier > 0 ? good : no_verdict;
  }
};

}  // namespace tandem::bench
