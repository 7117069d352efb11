#include "plugins/sim/machine.h"

#include <algorithm>

#include "plugins/machine_options.h"

namespace tandem::sim {

namespace {

// Above what a 64-bit process can map, so that a mistaken access faults instead of hitting memory.
constexpr uintptr_t first_address = uintptr_t{1} << 56;

}  // namespace

Machine::Machine(const tandem_machine_options& options)
    : device_count_(options.device_count),
      simulation_(timing::Links(options, timing::default_link_bandwidth)),
      next_address_(first_address) {}

void Machine::require_device(int32_t device) const {
  if (device < 0 || device >= device_count_) {
    throw sdk::invalid("device ", device, " of a machine of ", device_count_);
  }
}

std::unique_ptr<Stream> Machine::make_stream(int32_t device) {
  require_device(device);
  auto stream = std::make_unique<Stream>();
  const Lock lock(mutex_);
  stream->device = device;
  stream->number = stream_count_++;
  return stream;
}

bool Machine::finish(Stream& stream) {
  Lock lock(mutex_);
  return run_until(lock, [&] { return stream.queue.empty() || stream.queue.back()->is_done; });
}

void Machine::submit(Stream& stream, const tandem_work& work) {
  const auto operation = std::make_shared<Issued>();
  operation->work = work;
  const Lock lock(mutex_);
  issue(stream, operation);
}

void Machine::copy(Stream& stream, int32_t target_device, int32_t source_device, int64_t bytes) {
  if (target_device != TANDEM_HOST) require_device(target_device);
  if (source_device != TANDEM_HOST) require_device(source_device);
  if (bytes < 0) throw sdk::invalid("a copy of ", bytes, " bytes");
  const auto operation = std::make_shared<Issued>();
  operation->source = source_device;
  operation->target = target_device;
  operation->bytes = bytes;
  operation->copies = {&operation->bytes, 1};
  const Lock lock(mutex_);
  issue(stream, operation);
}

void Machine::wait(Stream& stream, const Event& event) {
  const auto operation = std::make_shared<Issued>();
  const Lock lock(mutex_);
  if (event.latest == nullptr) return;
  simulation_.follow(*operation, *event.latest);
  issue(stream, operation);
}

void Machine::record(Stream& stream, Event& event) {
  const auto operation = std::make_shared<Issued>();
  const Lock lock(mutex_);
  issue(stream, operation);
  event.latest = operation;
}

tandem_status Machine::synchronize(const Event& event) {
  Lock lock(mutex_);
  const std::shared_ptr<Issued> latest = event.latest;
  const bool reached = latest == nullptr || run_until(lock, [&] { return latest->is_done; });
  if (reached && latest != nullptr) host_time_ = std::max(host_time_, latest->end);
  const tandem_status failed = failure_.report();
  if (failed != TANDEM_OK || reached) return failed;
  sdk::host->explain("nothing that is queued will ever reach this event");
  return TANDEM_TIMEOUT;
}

double Machine::time_of(const Event& event) {
  Lock lock(mutex_);
  const std::shared_ptr<Issued> latest = event.latest;
  if (latest == nullptr) throw sdk::invalid("the event was never recorded");
  if (!run_until(lock, [&] { return latest->is_done; })) {
    throw sdk::Refusal(TANDEM_TIMEOUT, "nothing that is queued will ever reach this event");
  }
  return latest->end;
}

void* Machine::make_address(int64_t bytes) {
  if (bytes < 0) throw sdk::invalid("memory of ", bytes, " bytes");
  constexpr uintptr_t alignment = 256;
  const Lock lock(mutex_);
  const uintptr_t address = next_address_;
  next_address_ += (static_cast<uintptr_t>(bytes) / alignment + 1) * alignment;
  return reinterpret_cast<void*>(address);
}

bool Machine::run_until(Lock& lock, const std::function<bool()>& is_done) {
  if (is_running_ && runner_ == std::this_thread::get_id()) {
    throw sdk::invalid("a host work waits for an event of its own machine");
  }
  idle_.wait(lock, [&] { return !is_running_; });
  is_running_ = true;
  runner_ = std::this_thread::get_id();
  const bool reached = simulation_.run(
      is_done, [&](timing::Operation& operation) { begin(lock, static_cast<Issued&>(operation)); });
  is_running_ = false;
  idle_.notify_all();
  return reached;
}

void Machine::issue(Stream& stream, const std::shared_ptr<Issued>& operation) {
  operation->stream = stream.number;
  operation->device = stream.device;
  operation->begin = std::max(operation->begin, host_time_);
  if (!stream.queue.empty()) simulation_.follow(*operation, *stream.queue.back());
  while (!stream.queue.empty() && stream.queue.front()->is_done) stream.queue.pop_front();
  stream.queue.push_back(operation);
  simulation_.issue(*operation);
}

// After the first failure nothing runs and nothing takes time, but records are still reached.
void Machine::begin(Lock& lock, Issued& operation) {
  if (failure_.happened()) {
    operation.copies = {};
  } else if (operation.work && operation.work->kind == TANDEM_WORK_HOST) {
    lock.unlock();
    failure_.run(*operation.work,
                 {sizeof(tandem_call), operation.device, 1, nullptr, nullptr, nullptr});
    lock.lock();
  } else if (operation.work && !(operation.work->predicted_seconds >= 0)) {
    failure_.keep(TANDEM_INVALID, operation.work->label,
                  "its time is not known, and a simulation needs it (measure costs with 'tandem "
                  "profile --costs')");
  } else if (operation.work) {
    operation.seconds = operation.work->predicted_seconds;
  }
}

}  // namespace tandem::sim
