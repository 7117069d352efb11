// A stream: a thread with a FIFO queue, asynchronous like a CUDA stream. Calls return at once and
// their work happens in order. A failed work fails the machine: from then on works and copies are
// skipped, but events are still recorded, so that no wait hangs.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "plugins/cpu/event.h"
#include "plugins/cpu/machine.h"

namespace tandem::cpu {

class Stream {
 public:
  // Throws if the thread cannot be started. `machine` must outlive the stream.
  Stream(Machine& machine, int32_t device, const std::string& name);
  // Waits until everything that was issued is done.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] Machine& machine() const { return machine_; }

  void submit(const tandem_work& work);
  // Throws Refusal for unknown devices, null memory or a negative size.
  void copy(const char* label, int32_t target_device, void* target, int32_t source_device,
            const void* source, int64_t bytes);
  void wait(const Event& event);
  void record(Event& event);

 private:
  struct Copy {
    const char* label;
    int32_t target_device, source_device;
    void* target;
    const void* source;
    int64_t bytes;
  };
  using Wait = std::shared_ptr<const Record>;
  using Mark = std::shared_ptr<Record>;
  struct Stop {};
  struct Operation {
    double issued;
    std::variant<Stop, tandem_work, Copy, Wait, Mark> what;
  };

  void issue(decltype(Operation::what) what);
  Operation next();
  void prepare_thread();
  void run();
  void perform(const tandem_work& work);
  void perform(const Copy& copy);
  void perform(const Wait& record);
  void perform(const Mark& record);
  void delay();
  [[nodiscard]] bool is_paced() const { return machine_.options().paced != 0; }

  Machine& machine_;
  const int32_t device_;
  const uint32_t number_;
  const std::string name_;
  uint32_t delays_ = 0;
  // The stream's current time. In paced mode it is the time that the stream would have reached if
  // timers and thread switches took no time. Deadlines are counted from it, so that the delay of
  // one sleep does not add to the next one, nor to the streams that wait for this one. In other
  // modes it is the clock.
  double time_ = 0;

  std::mutex mutex_;
  std::condition_variable condition_;
  std::deque<Operation> queue_;
  std::thread thread_;  // last, since it starts in the constructor
};

}  // namespace tandem::cpu
