// The sim backend: N devices in virtual time. Nothing is computed and no device memory exists.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "plugins/machine_options.h"
#include "plugins/sdk.h"
#include "plugins/sim/machine.h"

namespace {

using tandem::sdk::guarded;
using tandem::sdk::invalid;
using tandem::sim::Event;
using tandem::sim::Machine;
using tandem::sim::Stream;

// A simulated device, where the roofline must stand in for costs.
constexpr double peak_flops = 500e9;
constexpr int64_t memory_bytes = int64_t{16} << 30;

struct StreamOfMachine {
  Machine& machine;
  std::unique_ptr<Stream> stream;
};
struct EventOfMachine {
  Machine& machine;
  Event event;
};

Machine& of(tandem_machine* machine) {
  return *reinterpret_cast<Machine*>(machine);
}
StreamOfMachine& of(tandem_stream* stream) {
  return *reinterpret_cast<StreamOfMachine*>(stream);
}
EventOfMachine& of(tandem_event* event) {
  return *reinterpret_cast<EventOfMachine*>(event);
}

tandem_status count(int32_t* count) {
  *count = 1;
  return TANDEM_OK;
}

tandem_status describe(int32_t, tandem_device_info* target) {
  tandem_device_info info{};
  std::strncpy(info.name, "simulated device", sizeof info.name - 1);
  info.memory_bytes = memory_bytes;
  info.available_bytes = memory_bytes;
  info.peak_flops = peak_flops;
  info.memory_bandwidth = tandem::timing::memory_bandwidth;
  tandem::sdk::give(info, target);
  return TANDEM_OK;
}

tandem_status open(const tandem_machine_options* options, tandem_machine** machine) {
  return guarded([&] {
    *machine =
        reinterpret_cast<tandem_machine*>(new Machine(tandem::sdk::checked(*options, "sim")));
  });
}

void close(tandem_machine* machine) {
  delete &of(machine);
}

tandem_status device_info(tandem_machine* machine, int32_t device, tandem_device_info* info) {
  const tandem_status status = guarded([&] { of(machine).require_device(device); });
  return status == TANDEM_OK ? describe(device, info) : status;
}

// Pinned memory is the host's, which may touch it; its pages cost nothing until it does.
tandem_status allocate(tandem_machine* machine, int32_t device, int32_t memory, int64_t bytes,
                       void** address) {
  return guarded([&] {
    of(machine).require_device(device);
    if (memory != TANDEM_MEMORY_PINNED) {
      *address = of(machine).make_address(bytes);
      return;
    }
    if (bytes < 0) throw invalid("memory of ", bytes, " bytes");
    *address = std::calloc(1, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (*address == nullptr) throw std::bad_alloc();
  });
}

void release(tandem_machine*, int32_t, int32_t memory, void* address) {
  if (memory == TANDEM_MEMORY_PINNED) std::free(address);
}

tandem_status create_stream(tandem_machine* machine, int32_t device, int32_t, const char*,
                            tandem_stream** stream) {
  return guarded([&] {
    *stream = reinterpret_cast<tandem_stream*>(
        new StreamOfMachine{of(machine), of(machine).make_stream(device)});
  });
}

void destroy_stream(tandem_stream* stream) {
  bool finished = false;
  guarded([&] { finished = of(stream).machine.finish(*of(stream).stream); });
  if (finished) delete &of(stream);
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
  return guarded([&] {
    if (work->kind == TANDEM_WORK_HOST && work->run == nullptr) {
      throw invalid("a host work without a function");
    }
    of(stream).machine.submit(*of(stream).stream, *work);
  });
}

tandem_status copy(tandem_stream* stream, const char*, int32_t target_device, void*,
                   int32_t source_device, const void*, int64_t bytes) {
  return guarded(
      [&] { of(stream).machine.copy(*of(stream).stream, target_device, source_device, bytes); });
}

tandem_status wait(tandem_stream* stream, tandem_event* event) {
  return guarded([&] { of(stream).machine.wait(*of(stream).stream, of(event).event); });
}

tandem_status record(tandem_stream* stream, tandem_event* event) {
  return guarded([&] { of(stream).machine.record(*of(stream).stream, of(event).event); });
}

// Virtual time passes as fast as it can be computed: the host never waits.
tandem_status synchronize(tandem_event* event, double) {
  tandem_status status = TANDEM_OK;
  const tandem_status thrown =
      guarded([&] { status = of(event).machine.synchronize(of(event).event); });
  return thrown != TANDEM_OK ? thrown : status;
}

tandem_status event_time(tandem_event* event, double* seconds) {
  return guarded([&] { *seconds = of(event).machine.time_of(of(event).event); });
}

tandem_status no_arithmetic() {
  tandem::sdk::host->explain("a simulated device computes nothing");
  return TANDEM_UNSUPPORTED;
}
tandem_status fill(const tandem_call*, float*, float, int64_t) {
  return no_arithmetic();
}
tandem_status add(const tandem_call*, float*, const float* const*, uint32_t, int64_t) {
  return no_arithmetic();
}
tandem_status update(const tandem_call*, const tandem_update*) {
  return no_arithmetic();
}
tandem_status check_finite(const tandem_call*, const float*, int64_t, int32_t*) {
  return no_arithmetic();
}

tandem_status sum_of_squares(const tandem_call*, const float*, int64_t, double*) {
  return no_arithmetic();
}

tandem_status convert_pixels(const tandem_call*, const tandem_pixels*) {
  return no_arithmetic();
}

constexpr tandem_buffers buffers{sizeof(tandem_buffers), 0, &allocate, &release};
constexpr tandem_streams streams{sizeof(tandem_streams),
                                 1,
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
                                 0};
constexpr tandem_arithmetic arithmetic{
    sizeof(tandem_arithmetic), 1U << TANDEM_FLOAT32, 0, &fill, &add, &update, &check_finite,
    &sum_of_squares,           &convert_pixels};
constexpr tandem_backend backend{sizeof(tandem_backend),
                                 1,
                                 "sim",
                                 "N simulated devices in virtual time (sim:N)",
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
  return tandem::sdk::Plugin(host, "tandem-backend-sim", "0.1.0").backend(&backend).table();
}
