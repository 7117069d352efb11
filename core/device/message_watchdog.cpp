#include "core/device/message_watchdog.h"

#include <chrono>
#include <utility>

#include "core/base/error.h"

namespace tandem {

MessageWatchdog::MessageWatchdog(double seconds, std::function<void()> give_up)
    : seconds_(seconds), give_up_(std::move(give_up)), thread_([this] { run(); }) {}

MessageWatchdog::~MessageWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MessageWatchdog::run() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    changed_.wait(lock, [&] { return is_waiting_ || is_ending_; });
    const int64_t watched = waits_;
    const auto is_over = [&] { return !is_waiting_ || waits_ != watched || is_ending_; };
    // In parts, so that time in which this process itself was stopped does not count.
    constexpr int parts = 20;
    int waited = 0;
    while (waited < parts &&
           !changed_.wait_for(lock, std::chrono::duration<double>(seconds_ / parts), is_over)) {
      ++waited;
    }
    if (waited < parts) continue;
    has_expired_ = true;
    give_up_();
    return;
  }
}

bool MessageWatchdog::expires(const std::function<void()>& call) {
  const auto set_waiting = [&](bool is_waiting) {
    const std::lock_guard lock(mutex_);
    is_waiting_ = is_waiting;
    waits_ += is_waiting ? 1 : 0;
    return has_expired_;
  };
  static_cast<void>(set_waiting(true));
  changed_.notify_all();
  try {
    call();
  } catch (const Error&) {
    if (!set_waiting(false)) throw;
    return true;
  } catch (...) {
    static_cast<void>(set_waiting(false));
    throw;
  }
  static_cast<void>(set_waiting(false));
  return false;
}

}  // namespace tandem
