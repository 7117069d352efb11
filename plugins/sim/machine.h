// A machine of simulated devices: what the host issues to its streams becomes operations of a
// Simulation, which continues when the host asks for an event. Times never depend on which host
// thread issued first to which stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "plugins/first_failure.h"
#include "plugins/simulation.h"

namespace tandem::sim {

// What was issued to a stream. Records and waits are operations that take no time.
struct Issued : timing::Operation {
  int32_t device = 0;
  std::optional<tandem_work> work;
  int64_t bytes = 0;  // of a copy
};

struct Event {
  std::shared_ptr<Issued> latest;  // its latest record; null: never recorded, which counts as done
};

struct Stream {
  int32_t device = 0;
  uint32_t number = 0;                        // in order of creation
  std::deque<std::shared_ptr<Issued>> queue;  // what is not done, and the latest
};

class Machine {
 public:
  // Throws Refusal on options that make no sense.
  explicit Machine(const tandem_machine_options& options);

  // Throws Refusal unless the device exists.
  void require_device(int32_t device) const;

  [[nodiscard]] std::unique_ptr<Stream> make_stream(int32_t device);
  // Completes what the stream still holds; false if that cannot be, and the stream must stay.
  [[nodiscard]] bool finish(Stream& stream);

  void submit(Stream& stream, const tandem_work& work);
  void copy(Stream& stream, int32_t target_device, int32_t source_device, int64_t bytes);
  void wait(Stream& stream, const Event& event);
  void record(Stream& stream, Event& event);

  // Continues until the event's latest record is reached. Status and reason of the first failed
  // work, or TANDEM_TIMEOUT if nothing that is queued will ever reach it.
  [[nodiscard]] tandem_status synchronize(const Event& event);
  // Virtual seconds; continues as synchronize() does. Throws Refusal if it was never recorded.
  [[nodiscard]] double time_of(const Event& event);

  // A distinct address that no memory stands behind.
  [[nodiscard]] void* make_address(int64_t bytes);

 private:
  using Lock = std::unique_lock<std::mutex>;
  // False if it stopped because nothing can move.
  bool run_until(Lock& lock, const std::function<bool()>& is_done);
  void issue(Stream& stream, const std::shared_ptr<Issued>& operation);
  void begin(Lock& lock, Issued& operation);

  const int32_t device_count_;
  sdk::FirstFailure failure_;

  std::mutex mutex_;  // of everything below, and of all streams, events and operations
  std::condition_variable idle_;
  bool is_running_ = false;
  std::thread::id runner_;
  uint32_t stream_count_ = 0;
  timing::Simulation simulation_;
  double host_time_ = 0;  // of the latest event the host has waited for: it issues nothing earlier
  uintptr_t next_address_;
};

}  // namespace tandem::sim
