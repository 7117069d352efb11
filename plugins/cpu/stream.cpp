#include "plugins/cpu/stream.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "plugins/cpu/team.h"
#include "plugins/random.h"

namespace tandem::cpu {

Stream::Stream(Machine& machine, int32_t device, const std::string& name)
    : machine_(machine),
      device_(device),
      number_(machine.next_stream_number()),
      name_(name),
      thread_([this] { run(); }) {}

Stream::~Stream() {
  issue(Stop{});
  thread_.join();
}

void Stream::submit(const tandem_work& work) {
  const bool is_run = !is_paced() || work.kind != TANDEM_WORK_COMPUTE;
  if (is_run && work.run == nullptr) throw sdk::invalid("a work without a function");
  issue(work);
}

void Stream::copy(const char* label, int32_t target_device, void* target, int32_t source_device,
                  const void* source, int64_t bytes) {
  if (target_device != TANDEM_HOST) machine_.require_device(target_device);
  if (source_device != TANDEM_HOST) machine_.require_device(source_device);
  if (bytes < 0) throw sdk::invalid("a copy of ", bytes, " bytes");
  if (bytes > 0 && (target == nullptr || source == nullptr)) {
    throw sdk::invalid("a copy of ", bytes, " bytes ", target == nullptr ? "to" : "from", " NULL");
  }
  issue(Copy{label, target_device, source_device, target, source, bytes});
}

void Stream::wait(const Event& event) {
  Wait record = event.latest();
  if (record != nullptr && !record->is_reached()) issue(std::move(record));
}

void Stream::record(Event& event) {
  issue(event.renew());
}

void Stream::issue(decltype(Operation::what) what) {
  const double issued = machine_.clock().now();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({issued, std::move(what)});
  }
  condition_.notify_one();
}

Stream::Operation Stream::next() {
  std::unique_lock lock(mutex_);
  condition_.wait(lock, [&] { return !queue_.empty(); });
  Operation operation = std::move(queue_.front());
  queue_.pop_front();
  return operation;
}

void Stream::prepare_thread() {
  constexpr size_t longest_name = 15;  // of a Linux thread
  pthread_setname_np(pthread_self(), name_.substr(0, longest_name).c_str());
  // ns; the default of 50 us would be most of the delay of a sleep
  prctl(PR_SET_TIMERSLACK, 1000UL);
  set_team_size(machine_.threads(device_));
}

void Stream::run() {
  prepare_thread();
  for (;;) {
    const Operation operation = next();
    if (std::holds_alternative<Stop>(operation.what)) return;
    time_ = is_paced() ? std::max(time_, operation.issued) : machine_.clock().now();
    std::visit(
        [this](const auto& what) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(what)>, Stop>) perform(what);
        },
        operation.what);
  }
}

void Stream::perform(const tandem_work& work) {
  if (machine_.failure().happened()) return;
  delay();
  if (is_paced() && work.kind == TANDEM_WORK_COMPUTE) {
    if (!(work.predicted_seconds >= 0)) {
      machine_.failure().keep(TANDEM_INVALID, work.label,
                              "its time is not known, but paced mode needs it (measure costs with "
                              "'tandem profile --costs')");
      return;
    }
    time_ += work.predicted_seconds;
    machine_.clock().sleep_until(time_);
    return;
  }
  machine_.failure().run(
      work, {sizeof(tandem_call), device_, machine_.threads(device_), nullptr, nullptr, nullptr});
  time_ = machine_.clock().now();
}

void Stream::perform(const Copy& copy) {
  if (machine_.failure().happened()) return;
  delay();
  const double deadline =
      machine_.reserve_link(copy.source_device, copy.target_device, copy.bytes, time_);
  const double began = machine_.clock().now();
  if (copy.bytes > 0) std::memcpy(copy.target, copy.source, static_cast<size_t>(copy.bytes));
  time_ = std::max(deadline, time_ + machine_.clock().now() - began);
  machine_.clock().sleep_until(time_);
}

void Stream::perform(const Wait& record) {
  time_ = std::max(time_, record->wait());
}

void Stream::perform(const Mark& record) {
  record->reach(time_);
}

void Stream::delay() {
  const tandem_machine_options& options = machine_.options();
  if (options.delay_seed == 0 || options.delay_seconds <= 0) return;
  const uint32_t bits = tandem_random_block(options.delay_seed, 0, number_, 0, delays_++).value[0];
  time_ = machine_.clock().now() + options.delay_seconds * tandem_uniform(bits);
  machine_.clock().sleep_until(time_);
}

}  // namespace tandem::cpu
