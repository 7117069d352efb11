#include "plugins/cpu/event.h"

#include <algorithm>
#include <chrono>

namespace tandem::cpu {

void Record::reach(double time) {
  {
    const std::lock_guard lock(mutex_);
    time_ = time;
    is_reached_ = true;
  }
  // Without the lock, which the woken threads take at once.
  condition_.notify_all();
}

bool Record::is_reached() const {
  const std::lock_guard lock(mutex_);
  return is_reached_;
}

double Record::wait() const {
  std::unique_lock lock(mutex_);
  condition_.wait(lock, [&] { return is_reached_; });
  return time_;
}

bool Record::wait_for(double seconds) const {
  constexpr double century = 3e9;  // the clock's nanoseconds would overflow
  if (seconds < 0 || seconds > century) return wait(), true;
  const auto duration = std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
  std::unique_lock lock(mutex_);
  return condition_.wait_until(lock, std::chrono::steady_clock::now() + duration,
                               [&] { return is_reached_; });
}

double Record::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

std::shared_ptr<const Record> Event::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::shared_ptr<Record> Event::renew() {
  auto record = std::make_shared<Record>();
  const std::lock_guard lock(mutex_);
  latest_ = record;
  return record;
}

}  // namespace tandem::cpu
