#include "core/device/machine.h"

#include <optional>
#include <utility>

#include "core/plugin/host.h"

namespace tandem {
namespace {

void require_graphs(const Machine& machine) {
  if (machine.captures_graphs()) return;
  throw error("backend '{}' has no graphs of captured work", machine.kind());
}

}  // namespace

Machine::Machine(const tandem_backend& backend, const DeviceSpec& devices,
                 const MachineOptions& options)
    : backend_(backend), device_count_(devices.count()) {
  tandem_machine_options raw{};
  raw.struct_size = sizeof raw;
  raw.device_count = device_count_;
  raw.ordinals = devices.ordinals.data();
  raw.threads = options.threads;
  raw.link_bandwidth = options.link.bandwidth;
  raw.link_latency = options.link.latency;
  raw.delay_seed = options.delay_seed;
  raw.delay_seconds = options.delay_seconds;
  raw.paced = options.paced ? 1 : 0;
  std::optional<TopologyTable> topology;
  tandem_topology table{};
  if (options.topology != nullptr) {
    if (options.topology->device_count() != device_count_) {
      throw error("topology '{}' has {} devices, but '{}' asks for {}", options.topology->file,
                  options.topology->device_count(), to_string(devices), device_count_);
    }
    table = topology.emplace(*options.topology).raw();
    raw.topology = &table;
  }
  check(backend_.open(&raw, &machine_), fmt::format("devices '{}'", to_string(devices)));
}

Machine::~Machine() {
  if (!abandoned_) backend_.close(machine_);
}

tandem_device_info Machine::device_info(int device) const {
  tandem_device_info info{};
  info.struct_size = sizeof info;
  check(backend_.device_info(machine_, device, &info),
        fmt::format("device {}:{}", backend_.kind, device));
  return info;
}

Memory::Memory(const Machine& machine, int device, int32_t kind, int64_t bytes)
    : address_(nullptr, {&machine, device, kind}), bytes_(bytes) {
  void* address = nullptr;
  check(machine.backend().buffers->allocate(machine.handle(), device, kind, bytes, &address),
        fmt::format("{}memory of {}:{}", kind == TANDEM_MEMORY_PINNED ? "pinned host " : "",
                    machine.kind(), device));
  address_.reset(address);
}

void Memory::Free::operator()(void* address) const {
  machine->backend().buffers->free(machine->handle(), device, kind, address);
}

Event::Event(const Machine& machine)
    : machine_(&machine), event_(nullptr, machine.backend().streams->destroy_event) {
  tandem_event* event = nullptr;
  check(machine.backend().streams->create_event(machine.handle(), &event), "making an event");
  event_.reset(event);
}

bool Event::synchronize(double seconds) const {
  const tandem_status status = machine_->backend().streams->synchronize(event_.get(), seconds);
  if (status == TANDEM_TIMEOUT && seconds >= 0) {
    static_cast<void>(take_reason());
    return false;
  }
  check(status, fmt::format("devices '{}'", machine_->kind()));
  return true;
}

double Event::time() const {
  double seconds = 0;
  check(machine_->backend().streams->event_time(event_.get(), &seconds), "the time of an event");
  return seconds;
}

Graph::Graph(const Machine& machine, tandem_graph* graph)
    : graph_(graph, machine.backend().capture->destroy_graph) {}

Stream::Stream(const Machine& machine, int device, int priority, const std::string& name)
    : machine_(&machine), stream_(nullptr, machine.backend().streams->destroy_stream) {
  tandem_stream* stream = nullptr;
  check(machine.backend().streams->create_stream(machine.handle(), device, priority, name.c_str(),
                                                 &stream),
        fmt::format("stream '{}' of {}:{}", name, machine.kind(), device));
  stream_.reset(stream);
}

void Stream::submit(const tandem_work& work) const {
  check(machine_->backend().streams->submit(stream_.get(), &work),
        fmt::format("task '{}'", work.label == nullptr ? "" : work.label));
}

void Stream::copy(const char* label, int target_device, void* target, int source_device,
                  const void* source, int64_t bytes) const {
  check(machine_->backend().streams->copy(stream_.get(), label, target_device, target,
                                          source_device, source, bytes),
        fmt::format("copy '{}'", label == nullptr ? "" : label));
}

void Stream::copy_rows(const char* label, const tandem_rows& rows) const {
  if (const auto at_once = machine_->backend().streams->copy_rows;
      at_once != nullptr && rows.row_count > 1) {
    return check(at_once(stream_.get(), label, &rows),
                 fmt::format("copy '{}'", label == nullptr ? "" : label));
  }
  for (int64_t row = 0; row < rows.row_count; ++row) {
    copy(label, rows.target_device, static_cast<std::byte*>(rows.target) + row * rows.target_stride,
         rows.source_device, static_cast<const std::byte*>(rows.source) + row * rows.source_stride,
         rows.row_bytes);
  }
}

void Stream::wait(const Event& event) const {
  check(machine_->backend().streams->wait(stream_.get(), event.handle()), "waiting for an event");
}

void Stream::record(const Event& event) const {
  check(machine_->backend().streams->record(stream_.get(), event.handle()), "recording an event");
}

void Stream::begin_capture() const {
  require_graphs(*machine_);
  check(machine_->backend().capture->begin(stream_.get()), "beginning a capture");
}

Graph Stream::end_capture() const {
  require_graphs(*machine_);
  tandem_graph* graph = nullptr;
  check(machine_->backend().capture->end(stream_.get(), &graph), "a capture");
  return {*machine_, graph};
}

void Stream::launch(const char* label, const Graph& graph) const {
  require_graphs(*machine_);
  check(machine_->backend().capture->launch(stream_.get(), label, graph.handle()),
        fmt::format("graph '{}'", label == nullptr ? "" : label));
}

void Stream::synchronize() const {
  const Event event(*machine_);
  record(event);
  event.synchronize(-1);
}

}  // namespace tandem
