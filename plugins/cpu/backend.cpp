// The cpu backend: N devices that share the cores of this computer.

#include <cstring>
#include <memory>

#include "plugins/cpu/arithmetic.h"
#include "plugins/cpu/hardware.h"
#include "plugins/cpu/kernel_library.h"
#include "plugins/cpu/memory.h"
#include "plugins/cpu/pixels.h"
#include "plugins/cpu/stream.h"
#include "plugins/cpu/updates.h"
#include "plugins/sdk.h"

namespace {

using tandem::cpu::Event;
using tandem::cpu::Machine;
using tandem::cpu::Record;
using tandem::cpu::Stream;
using tandem::sdk::guarded;
using tandem::sdk::invalid;
using tandem::sdk::Refusal;

struct EventOfMachine {
  Machine& machine;
  Event event;
};

Machine& of(tandem_machine* machine) {
  return *reinterpret_cast<Machine*>(machine);
}
Stream& of(tandem_stream* stream) {
  return *reinterpret_cast<Stream*>(stream);
}
EventOfMachine& of(tandem_event* event) {
  return *reinterpret_cast<EventOfMachine*>(event);
}

tandem_device_info device(int32_t threads) {
  tandem_device_info info = tandem::cpu::describe(threads);
  std::strncpy(info.kernels, tandem::cpu::kernel_library().c_str(), sizeof info.kernels - 1);
  return info;
}

tandem_status count(int32_t* count) {
  *count = 1;
  return TANDEM_OK;
}

tandem_status describe(int32_t, tandem_device_info* info) {
  return guarded([&] { tandem::sdk::give(device(tandem::cpu::core_count()), info); });
}

tandem_status open(const tandem_machine_options* options, tandem_machine** machine) {
  return guarded([&] { *machine = reinterpret_cast<tandem_machine*>(new Machine(*options)); });
}

void close(tandem_machine* machine) {
  delete &of(machine);
}

tandem_status device_info(tandem_machine* machine, int32_t device, tandem_device_info* info) {
  return guarded([&] {
    of(machine).require_device(device);
    tandem::sdk::give(::device(of(machine).threads(device)), info);
  });
}

tandem_status allocate(tandem_machine* machine, int32_t device, int32_t, int64_t bytes,
                       void** address) {
  return guarded([&] {
    of(machine).require_device(device);
    *address = tandem::cpu::allocate(bytes, of(machine).threads());
  });
}

void release(tandem_machine*, int32_t, int32_t, void* address) {
  tandem::cpu::release(address);
}

// All streams of a device have the same priority: the operating system schedules them better than
// fixed priorities would.
tandem_status create_stream(tandem_machine* machine, int32_t device, int32_t, const char* name,
                            tandem_stream** stream) {
  return guarded([&] {
    of(machine).require_device(device);
    *stream = reinterpret_cast<tandem_stream*>(
        new Stream(of(machine), device, name == nullptr ? "stream" : name));
  });
}

void destroy_stream(tandem_stream* stream) {
  delete &of(stream);
}

tandem_status create_event(tandem_machine* machine, tandem_event** event) {
  return guarded([&] {
    *event = reinterpret_cast<tandem_event*>(new EventOfMachine{of(machine), {}});
  });
}

void destroy_event(tandem_event* event) {
  delete &of(event);
}

tandem_status submit(tandem_stream* stream, const tandem_work* work) {
  return guarded([&] { of(stream).submit(*work); });
}

tandem_status copy(tandem_stream* stream, const char* label, int32_t target_device, void* target,
                   int32_t source_device, const void* source, int64_t bytes) {
  return guarded(
      [&] { of(stream).copy(label, target_device, target, source_device, source, bytes); });
}

tandem_status wait(tandem_stream* stream, tandem_event* event) {
  return guarded([&] { of(stream).wait(of(event).event); });
}

tandem_status record(tandem_stream* stream, tandem_event* event) {
  return guarded([&] { of(stream).record(of(event).event); });
}

tandem_status synchronize(tandem_event* event, double seconds) {
  tandem_status status = TANDEM_OK;
  const tandem_status thrown = guarded([&] {
    const std::shared_ptr<const Record> latest = of(event).event.latest();
    const bool reached = latest == nullptr || latest->wait_for(seconds);
    status = of(event).machine.failure().report();
    if (status == TANDEM_OK && !reached) {
      throw Refusal(TANDEM_TIMEOUT, tandem::sdk::text("not reached within ", seconds, " seconds"));
    }
  });
  return thrown != TANDEM_OK ? thrown : status;
}

tandem_status event_time(tandem_event* event, double* seconds) {
  return guarded([&] {
    const std::shared_ptr<const Record> latest = of(event).event.latest();
    if (latest == nullptr) throw invalid("the event was never recorded");
    if (!latest->is_reached()) throw Refusal(TANDEM_TIMEOUT, "the event is not yet reached");
    *seconds = latest->time();
  });
}

tandem_status fill(const tandem_call* call, float* target, float value, int64_t count) {
  return guarded([&] { tandem::cpu::fill(call->threads, target, value, count); });
}

tandem_status add(const tandem_call* call, float* target, const float* const* sources,
                  uint32_t source_count, int64_t count) {
  return guarded([&] { tandem::cpu::add(call->threads, target, sources, source_count, count); });
}

tandem_status update(const tandem_call* call, const tandem_update* update) {
  return guarded([&] { tandem::cpu::update(call->threads, *update); });
}

tandem_status check_finite(const tandem_call* call, const float* values, int64_t count,
                           int32_t* found_inf) {
  return guarded([&] { tandem::cpu::check_finite(call->threads, values, count, found_inf); });
}

tandem_status sum_of_squares(const tandem_call* call, const float* values, int64_t count,
                             double* sum) {
  return guarded([&] { *sum = tandem::cpu::sum_of_squares(call->threads, values, count); });
}

tandem_status convert_pixels(const tandem_call* call, const tandem_pixels* pixels) {
  return guarded([&] { tandem::cpu::convert_pixels(call->threads, *pixels); });
}

constexpr tandem_buffers buffers{sizeof(tandem_buffers), 1, &allocate, &release};
constexpr tandem_streams streams{sizeof(tandem_streams),
                                 0,
                                 &create_stream,
                                 &destroy_stream,
                                 &create_event,
                                 &destroy_event,
                                 &submit,
                                 &copy,
                                 &wait,
                                 &record,
                                 &synchronize,
                                 &event_time,
                                 nullptr,
                                 1};
constexpr tandem_arithmetic arithmetic{sizeof(tandem_arithmetic),
                                       1U << TANDEM_FLOAT32 | 1U << TANDEM_BFLOAT16,
                                       0,
                                       &fill,
                                       &add,
                                       &update,
                                       &check_finite,
                                       &sum_of_squares,
                                       &convert_pixels};
constexpr tandem_backend backend{sizeof(tandem_backend),
                                 1,
                                 "cpu",
                                 "this computer's cores, shared by N devices (cpu:N)",
                                 &count,
                                 &describe,
                                 &open,
                                 &close,
                                 &device_info,
                                 &buffers,
                                 &streams,
                                 &arithmetic,
                                 nullptr,
                                 nullptr};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return tandem::sdk::Plugin(host, "tandem-backend-cpu", "0.1.0").backend(&backend).table();
}
