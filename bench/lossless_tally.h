// What check_lossless counts, and the exit code that follows: `good` only if something was compared
// and all of it agrees.
#pragma once

namespace tandem::bench {

constexpr int good = 0, bad = 1, no_verdict = 2;

struct LosslessTally {
  int ran = 0, earlier = 0;  // compared now, and in an earlier call; of these
  int differ = 0;            // so many too much
  int refused = 0;           // by the net or the devices
  int failed = 0;            // behind that

  [[nodiscard]] int exit_code() const {
    if (differ + failed > 0) return bad;
    return ran + earlier > 0 ? good : no_verdict;
  }
};

}  // namespace tandem::bench
