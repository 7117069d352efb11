// A machine in virtual time: a clock per stream and per link. Operations are queued as they are
// issued and played when somebody asks for an event. Contended links serve copies in the order in
// which they become ready (ties: the stream created first), so the times never depend on which host
// thread issued first to which stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "plugins/first_failure.h"
#include "plugins/links.h"

namespace tandem::sim {

struct Stream;

// One record of an event: a wait means the record that was the latest when it was issued.
struct Record {
  bool is_reached = false;
  double time = 0;
  std::vector<Stream*> waiting;
};

struct Event {
  std::shared_ptr<Record> latest;  // null: never recorded, which counts as done
};

struct Copy {
  const char* label;
  int32_t target_device, source_device;
  int64_t bytes;
};
using Wait = std::shared_ptr<Record>;
struct Mark {
  std::shared_ptr<Record> record;
};
// The host issued what follows at this virtual time.
struct NotBefore {
  double time;
};
using Operation = std::variant<tandem_work, Copy, Wait, Mark, NotBefore>;

struct Stream {
  int32_t device = 0;
  uint32_t number = 0;  // in order of creation
  double time = 0;      // virtual: when everything played so far is done
  double issued = 0;    // virtual: when the host last issued something to it
  bool is_listed = false;
  std::deque<Operation> queue;
};

class Simulation {
 public:
  // Throws Refusal on options that make no sense.
  explicit Simulation(const tandem_machine_options& options);

  // Throws Refusal unless the device exists.
  void require_device(int32_t device) const;

  [[nodiscard]] std::unique_ptr<Stream> make_stream(int32_t device);
  // Plays what the stream still holds; false if that cannot be, and the stream stays referred to.
  [[nodiscard]] bool finish(Stream& stream);

  void issue(Stream& stream, Operation operation);
  void wait(Stream& stream, const Event& event);
  void record(Stream& stream, Event& event);

  // Plays until the event's latest record is reached. Status and reason of the first failed work,
  // or TANDEM_TIMEOUT if nothing that is queued will ever reach it.
  [[nodiscard]] tandem_status synchronize(const Event& event);
  // Virtual seconds; plays as synchronize() does. Throws Refusal if it was never recorded.
  [[nodiscard]] double time_of(const Event& event);

  // A distinct address that no memory stands behind.
  [[nodiscard]] void* make_address(int64_t bytes);

 private:
  struct ReadyCopy {
    double ready;
    uint32_t number;
    Stream* stream;
    bool operator>(const ReadyCopy& other) const {
      return std::pair(ready, number) > std::pair(other.ready, other.number);
    }
  };

  using Lock = std::unique_lock<std::mutex>;
  // False if it stopped because nothing can move.
  bool play_until(Lock& lock, const std::function<bool()>& is_done);
  void push(Stream& stream, Operation operation);
  void list(Stream& stream);
  // Plays a stream up to its next copy, unreached wait, or end.
  void advance(Lock& lock, Stream& stream);
  void play(Lock& lock, Stream& stream, const tandem_work& work);
  void reach(Record& record, double time);
  void serve(const ReadyCopy& next);

  const int32_t device_count_;
  sdk::FirstFailure failure_;

  std::mutex mutex_;  // of everything below, and of all streams, events and records
  std::condition_variable idle_;
  bool is_playing_ = false;
  std::thread::id player_;
  uint32_t stream_count_ = 0;
  std::vector<Stream*> runnable_;
  std::priority_queue<ReadyCopy, std::vector<ReadyCopy>, std::greater<>> copies_;
  sdk::Links links_;
  std::map<std::pair<int32_t, int32_t>, double> host_free_;  // (source, target): when it is free
  double host_time_ = 0;  // of the latest event the host has waited for: it issues nothing earlier
  uintptr_t next_address_;
};

}  // namespace tandem::sim
