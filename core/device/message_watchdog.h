// Ends waits for messages of other ranks that take too long: a call of a transport returns only
// when the message is there or this rank gives up.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace tandem {

class MessageWatchdog {
 public:
  // `give_up` makes the waiting call fail; it is called by a thread of the watchdog, once.
  MessageWatchdog(double seconds, std::function<void()> give_up);
  ~MessageWatchdog();
  MessageWatchdog(const MessageWatchdog&) = delete;
  MessageWatchdog& operator=(const MessageWatchdog&) = delete;

  // Makes the call; one thread at a time. True if it failed because it took too long. Else its
  // Error, if it fails, is the caller's. Time in which this process itself is stopped does not
  // count.
  [[nodiscard]] bool expires(const std::function<void()>& call);

 private:
  void run();

  const double seconds_;
  const std::function<void()> give_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_waiting_ = false, has_expired_ = false, is_ending_ = false;
  int64_t waits_ = 0;   // so far
  std::thread thread_;  // last: it uses the others
};

}  // namespace tandem
