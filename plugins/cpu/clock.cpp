#include "plugins/cpu/clock.h"

#include <cerrno>
#include <cmath>
#include <ctime>

namespace tandem::cpu {

void Clock::sleep_until(double seconds) const {
  if (now() >= seconds) return;  // saves a system call
  // libstdc++'s steady clock is CLOCK_MONOTONIC.
  const double since_opened = std::ceil(seconds * 1e9);
  const auto nanoseconds = std::chrono::nanoseconds(opened_.time_since_epoch()).count() +
                           static_cast<int64_t>(since_opened);
  const timespec deadline{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

}  // namespace tandem::cpu
