// Events. Every record of an event is an object of its own, so that a wait means the record that
// was the latest when the wait was issued, whatever is recorded afterwards and wherever. Waiting
// blocks.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

namespace tandem::cpu {

// When a record was reached: on the wall, and when it would have been reached on a machine whose
// timers and thread switches cost nothing (paced mode and slowed links; otherwise the same).
struct Reached {
  double time = 0;
  double nominal = 0;
};

class Record {
 public:
  void reach(const Reached& reached);
  [[nodiscard]] bool is_reached() const;
  // Blocks; the times when it was reached.
  Reached wait() const;
  // False if it is not reached within `seconds`; below 0: waits for ever.
  [[nodiscard]] bool wait_for(double seconds) const;
  [[nodiscard]] Reached reached() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable condition_;
  bool is_reached_ = false;
  Reached reached_;
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
