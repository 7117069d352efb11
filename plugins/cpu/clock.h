// Seconds since a machine was opened, on the steady clock, and sleeping until such a time. A sleep
// never ends early. If a CPU is free, it ends within about 50 us.
#pragma once

#include <chrono>

namespace tandem::cpu {

class Clock {
 public:
  using Steady = std::chrono::steady_clock;

  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Steady::now() - opened_).count();
  }
  void sleep_until(double seconds) const;

 private:
  Steady::time_point opened_ = Steady::now();
};

}  // namespace tandem::cpu
