// Events. Every record of an event is an object, so that a wait refers to the record that was the
// latest when the wait was issued, whatever is recorded afterwards. Waiting blocks.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

namespace tandem::cpu {

class Record {
 public:
  void reach(double time);
  [[nodiscard]] bool is_reached() const;
  // Blocks until it is reached; returns the time at which it was reached.
  double wait() const;
  // False if it is not reached within `seconds`. A negative number: waits without limit.
  [[nodiscard]] bool wait_for(double seconds) const;
  [[nodiscard]] double time() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable condition_;
  bool is_reached_ = false;
  double time_ = 0;
};

class Event {
 public:
  // Null: never recorded, which counts as done.
  [[nodiscard]] std::shared_ptr<const Record> latest() const;
  [[nodiscard]] std::shared_ptr<Record> renew();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Record> latest_;
};

}  // namespace tandem::cpu
