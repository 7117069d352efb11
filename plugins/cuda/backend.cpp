// The cuda backend: NVIDIA GPUs, or several devices on one (cuda:0,1 and cuda:0,0).

#include <cstdlib>

#include "plugins/cuda/arithmetic.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/event.h"
#include "plugins/cuda/hardware.h"
#include "plugins/cuda/machine.h"
#include "plugins/cuda/pixels.h"
#include "plugins/cuda/stream.h"
#include "plugins/cuda/updates.h"
#include "plugins/sdk.h"

namespace {

using tandem::cuda::Event;
using tandem::cuda::Graph;
using tandem::cuda::Machine;
using tandem::cuda::Stream;
using tandem::sdk::guarded;
using tandem::sdk::Refusal;

Machine& of(tandem_machine* machine) {
  return *reinterpret_cast<Machine*>(machine);
}
Stream& of(tandem_stream* stream) {
  return *reinterpret_cast<Stream*>(stream);
}
Event& of(tandem_event* event) {
  return *reinterpret_cast<Event*>(event);
}
Graph& of(tandem_graph* graph) {
  return *reinterpret_cast<Graph*>(graph);
}

// An error of the caller is returned to it. A failure of CUDA is the machine's, which synchronize
// returns, or the capture's, which end_capture returns.
template <class Function>
tandem_status issued(Machine& machine, Function&& function) {
  return guarded([&] {
    try {
      function();
    } catch (const Refusal& refusal) {
      if (refusal.status() == TANDEM_INVALID) throw;
      machine.failing().keep_whole(refusal.status(), refusal.what());
    }
  });
}

constexpr tandem_buffers buffers = [] {
  tandem_buffers table{};
  table.struct_size = sizeof table;
  table.allocate = [](tandem_machine* machine, int32_t device, int32_t memory, int64_t bytes,
                      void** address) {
    return guarded([&] { *address = of(machine).allocate(device, memory, bytes); });
  };
  table.free = [](tandem_machine* machine, int32_t device, int32_t memory, void* address) {
    static_cast<void>(guarded([&] { of(machine).release(device, memory, address); }));
  };
  return table;
}();

constexpr tandem_streams streams = [] {
  tandem_streams table{};
  table.struct_size = sizeof table;
  table.messages = 1;
  table.create_stream = [](tandem_machine* machine, int32_t device, int32_t priority,
                           const char* name, tandem_stream** stream) {
    return guarded([&] {
      *stream = reinterpret_cast<tandem_stream*>(
          new Stream(of(machine), device, priority, name == nullptr ? "stream" : name));
    });
  };
  table.destroy_stream = [](tandem_stream* stream) { delete &of(stream); };
  table.create_event = [](tandem_machine* machine, tandem_event** event) {
    return guarded([&] { *event = reinterpret_cast<tandem_event*>(new Event(of(machine))); });
  };
  table.destroy_event = [](tandem_event* event) { delete &of(event); };
  table.submit = [](tandem_stream* stream, const tandem_work* work) {
    return issued(of(stream).machine(), [&] { of(stream).submit(*work); });
  };
  table.copy = [](tandem_stream* stream, const char* label, int32_t target_device, void* target,
                  int32_t source_device, const void* source, int64_t bytes) {
    return issued(of(stream).machine(), [&] {
      of(stream).copy(label, target_device, target, source_device, source, bytes);
    });
  };
  table.copy_rows = [](tandem_stream* stream, const char* label, const tandem_rows* rows) {
    return issued(of(stream).machine(), [&] { of(stream).copy_rows(label, *rows); });
  };
  table.wait = [](tandem_stream* stream, tandem_event* event) {
    return issued(of(stream).machine(), [&] { of(stream).wait(of(event)); });
  };
  table.record = [](tandem_stream* stream, tandem_event* event) {
    return issued(of(stream).machine(), [&] { of(stream).record(of(event)); });
  };
  table.synchronize = [](tandem_event* event, double seconds) {
    tandem_status status = TANDEM_OK;
    const tandem_status thrown = guarded([&] {
      const bool reached = of(event).wait_for(seconds);
      status = of(event).machine().failure().report();
      if (status == TANDEM_OK && !reached) {
        throw Refusal(TANDEM_TIMEOUT,
                      tandem::sdk::text("not reached within ", seconds, " seconds"));
      }
    });
    return thrown != TANDEM_OK ? thrown : status;
  };
  table.event_time = [](tandem_event* event, double* seconds) {
    return guarded([&] { *seconds = of(event).time(); });
  };
  return table;
}();

constexpr tandem_arithmetic arithmetic = [] {
  tandem_arithmetic table{};
  table.struct_size = sizeof table;
  table.dtypes = tandem::cuda::all_dtypes;
  table.tf32 = 1;
  table.fill = [](const tandem_call* call, float* target, float value, int64_t count) {
    return guarded([&] { tandem::cuda::fill(*call, target, value, count); });
  };
  table.add = [](const tandem_call* call, float* target, const float* const* sources,
                 uint32_t source_count, int64_t count) {
    return guarded([&] { tandem::cuda::add(*call, target, sources, source_count, count); });
  };
  table.update = [](const tandem_call* call, const tandem_update* update) {
    return guarded([&] { tandem::cuda::update(*call, *update); });
  };
  table.check_finite = [](const tandem_call* call, const float* values, int64_t count,
                          int32_t* found_inf) {
    return guarded([&] { tandem::cuda::check_finite(*call, values, count, found_inf); });
  };
  table.sum_of_squares = [](const tandem_call* call, const float* values, int64_t count,
                            double* sum) {
    return guarded([&] { tandem::cuda::sum_of_squares(*call, values, count, sum); });
  };
  table.convert_pixels = [](const tandem_call* call, const tandem_pixels* pixels) {
    return guarded([&] { tandem::cuda::convert_pixels(*call, *pixels); });
  };
  return table;
}();

constexpr tandem_links links = [] {
  tandem_links table{};
  table.struct_size = sizeof table;
  table.find_topology = [](tandem_machine* machine, const tandem_topology** topology) {
    return guarded([&] { *topology = of(machine).topology(); });
  };
  return table;
}();

constexpr tandem_capture capture = [] {
  tandem_capture table{};
  table.struct_size = sizeof table;
  table.begin = [](tandem_stream* stream) { return guarded([&] { of(stream).begin_capture(); }); };
  table.end = [](tandem_stream* stream, tandem_graph** graph) {
    return guarded(
        [&] { *graph = reinterpret_cast<tandem_graph*>(of(stream).end_capture().release()); });
  };
  table.launch = [](tandem_stream* stream, const char* label, tandem_graph* graph) {
    return issued(of(stream).machine(), [&] { of(stream).launch(label, of(graph)); });
  };
  table.destroy_graph = [](tandem_graph* graph) { delete &of(graph); };
  return table;
}();

constexpr tandem_backend backend = [] {
  tandem_backend table{};
  table.struct_size = sizeof table;
  table.kind = "cuda";
  table.help = "NVIDIA GPUs by number (cuda:0,1); a GPU can be several devices (cuda:0,0)";
  table.count = [](int32_t* count) { return guarded([&] { *count = tandem::cuda::gpu_count(); }); };
  table.describe = [](int32_t ordinal, tandem_device_info* info) {
    return guarded([&] { tandem::sdk::give(tandem::cuda::describe_gpu(ordinal), info); });
  };
  table.open = [](const tandem_machine_options* options, tandem_machine** machine) {
    return guarded([&] { *machine = reinterpret_cast<tandem_machine*>(new Machine(*options)); });
  };
  table.close = [](tandem_machine* machine) { delete &of(machine); };
  table.device_info = [](tandem_machine* machine, int32_t device, tandem_device_info* info) {
    return guarded([&] { tandem::sdk::give(of(machine).device_info(device), info); });
  };
  table.buffers = &buffers;
  table.streams = &streams;
  table.arithmetic = &arithmetic;
  table.links = &links;
  table.capture = &capture;
  return table;
}();

}  // namespace

// Streams that share a hardware queue of a GPU wait for each other's kernels. By default CUDA uses
// 8 queues, fewer than two logical devices have streams. It reads this variable at its first call,
// which comes after the module is loaded. A value set by the user is kept.
extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  return tandem::sdk::Plugin(host, "tandem-backend-cuda", "0.1.0").backend(&backend).table();
}
