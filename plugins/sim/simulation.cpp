#include "plugins/sim/simulation.h"

#include <algorithm>

#include "plugins/sim/speeds.h"

namespace tandem::sim {

namespace {

constexpr int32_t most_devices = 1024;
// Above what a 64-bit process can map, so that a mistaken access faults instead of hitting memory.
constexpr uintptr_t first_address = uintptr_t{1} << 56;

double link_bandwidth(const tandem_machine_options& options) {
  return options.link_bandwidth > 0 ? options.link_bandwidth : default_link_bandwidth;
}

}  // namespace

Simulation::Simulation(const tandem_machine_options& options)
    : device_count_(options.device_count),
      links_(options, link_bandwidth(options)),
      next_address_(first_address) {
  if (options.device_count < 1 || options.device_count > most_devices) {
    throw sdk::invalid(options.device_count, " sim devices; there can be 1 to ", most_devices);
  }
}

void Simulation::require_device(int32_t device) const {
  if (device < 0 || device >= device_count_) {
    throw sdk::invalid("device ", device, " of a machine of ", device_count_);
  }
}

std::unique_ptr<Stream> Simulation::make_stream(int32_t device) {
  require_device(device);
  auto stream = std::make_unique<Stream>();
  const Lock lock(mutex_);
  stream->device = device;
  stream->number = stream_count_++;
  return stream;
}

bool Simulation::finish(Stream& stream) {
  Lock lock(mutex_);
  return play_until(lock, [&] { return stream.queue.empty() && !stream.is_listed; });
}

void Simulation::issue(Stream& stream, Operation operation) {
  const Lock lock(mutex_);
  push(stream, std::move(operation));
}

void Simulation::wait(Stream& stream, const Event& event) {
  Lock lock(mutex_);
  if (event.latest == nullptr) return;
  push(stream, event.latest);
}

void Simulation::record(Stream& stream, Event& event) {
  const Lock lock(mutex_);
  event.latest = std::make_shared<Record>();
  push(stream, Mark{event.latest});
}

tandem_status Simulation::synchronize(const Event& event) {
  Lock lock(mutex_);
  const std::shared_ptr<Record> latest = event.latest;
  const bool reached = latest == nullptr || play_until(lock, [&] { return latest->is_reached; });
  if (reached && latest != nullptr) host_time_ = std::max(host_time_, latest->time);
  const tandem_status failed = failure_.report();
  if (failed != TANDEM_OK || reached) return failed;
  sdk::host->explain("nothing that is queued will ever reach this event");
  return TANDEM_TIMEOUT;
}

double Simulation::time_of(const Event& event) {
  Lock lock(mutex_);
  const std::shared_ptr<Record> latest = event.latest;
  if (latest == nullptr) throw sdk::invalid("the event was never recorded");
  if (!play_until(lock, [&] { return latest->is_reached; })) {
    throw sdk::Refusal(TANDEM_TIMEOUT, "nothing that is queued will ever reach this event");
  }
  return latest->time;
}

void* Simulation::make_address(int64_t bytes) {
  if (bytes < 0) throw sdk::invalid("memory of ", bytes, " bytes");
  constexpr uintptr_t alignment = 256;
  const Lock lock(mutex_);
  const uintptr_t address = next_address_;
  next_address_ += (static_cast<uintptr_t>(bytes) / alignment + 1) * alignment;
  return reinterpret_cast<void*>(address);
}

bool Simulation::play_until(Lock& lock, const std::function<bool()>& is_done) {
  if (is_playing_ && player_ == std::this_thread::get_id()) {
    throw sdk::invalid("a host work waits for an event of its own machine");
  }
  idle_.wait(lock, [&] { return !is_playing_; });
  is_playing_ = true;
  player_ = std::this_thread::get_id();
  bool done = false;
  for (;;) {
    while (!runnable_.empty()) {
      Stream& stream = *runnable_.back();
      runnable_.pop_back();
      advance(lock, stream);
    }
    done = is_done();
    if (done || copies_.empty()) break;
    const ReadyCopy next = copies_.top();
    copies_.pop();
    serve(next);
  }
  is_playing_ = false;
  idle_.notify_all();
  return done;
}

// Every stream is in at most one place: listed as runnable, among the ready copies, waiting in a
// record, or nowhere with an empty queue. is_listed is true in the first three.
void Simulation::push(Stream& stream, Operation operation) {
  if (stream.issued < host_time_) stream.queue.push_back(NotBefore{host_time_});
  stream.issued = host_time_;
  stream.queue.push_back(std::move(operation));
  list(stream);
}

void Simulation::list(Stream& stream) {
  if (stream.is_listed) return;
  stream.is_listed = true;
  runnable_.push_back(&stream);
}

void Simulation::advance(Lock& lock, Stream& stream) {
  while (!stream.queue.empty()) {
    Operation& next = stream.queue.front();
    if (const auto* wait = std::get_if<Wait>(&next)) {
      if (!(*wait)->is_reached) {
        (*wait)->waiting.push_back(&stream);
        return;
      }
      stream.time = std::max(stream.time, (*wait)->time);
    } else if (std::holds_alternative<Copy>(next) && !failure_.happened()) {
      copies_.push({stream.time, stream.number, &stream});
      return;
    } else if (const auto* issued = std::get_if<NotBefore>(&next)) {
      stream.time = std::max(stream.time, issued->time);
    } else if (const auto* mark = std::get_if<Mark>(&next)) {
      reach(*mark->record, stream.time);
    } else if (const auto* work = std::get_if<tandem_work>(&next)) {
      play(lock, stream, *work);
    }
    stream.queue.pop_front();
  }
  stream.is_listed = false;
}

void Simulation::play(Lock& lock, Stream& stream, const tandem_work& work) {
  if (failure_.happened()) return;
  if (work.kind == TANDEM_WORK_HOST) {
    const tandem_work copy = work;  // the queue may grow while the lock is open
    lock.unlock();
    failure_.run(copy, {sizeof(tandem_call), stream.device, 1, nullptr, nullptr, nullptr});
    lock.lock();
  } else if (!(work.predicted_seconds >= 0)) {
    failure_.keep(TANDEM_INVALID, work.label,
                  "its time is not known, and a simulation needs it (measure costs with 'tandem "
                  "profile --costs')");
  } else {
    stream.time += work.predicted_seconds;
  }
}

void Simulation::reach(Record& record, double time) {
  record.is_reached = true;
  record.time = time;
  for (Stream* stream : record.waiting) runnable_.push_back(stream);
  record.waiting.clear();
}

void Simulation::serve(const ReadyCopy& next) {
  Stream& stream = *next.stream;
  if (!failure_.happened()) {
    const auto& copy = std::get<Copy>(stream.queue.front());
    const int32_t source = copy.source_device, target = copy.target_device;
    const auto bytes = static_cast<double>(copy.bytes);
    if (source == target) {
      stream.time = next.ready + 2 * bytes / memory_bandwidth;
    } else if (source == TANDEM_HOST || target == TANDEM_HOST) {
      double& free_at = host_free_[{source, target}];
      free_at = std::max(next.ready, free_at) + bytes / host_bandwidth;
      stream.time = free_at;
    } else {
      stream.time = links_.reserve(source, target, copy.bytes, next.ready);
    }
  }
  stream.queue.pop_front();
  runnable_.push_back(&stream);
}

}  // namespace tandem::sim
