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
    : machine_(&machine), device_(device), kind_(kind), bytes_(bytes) {
  check(machine.backend().buffers->allocate(machine.handle(), device, kind, bytes, &address_),
        fmt::format("{}memory of {}:{}", kind == TANDEM_MEMORY_PINNED ? "pinned host " : "",
                    machine.kind(), device));
}

Memory::~Memory() {
  if (address_ != nullptr)
    machine_->backend().buffers->free(machine_->handle(), device_, kind_, address_);
}

Memory::Memory(Memory&& other) noexcept
    : machine_(other.machine_),
      device_(other.device_),
      kind_(other.kind_),
      address_(std::exchange(other.address_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(machine_, other.machine_);
  std::swap(device_, other.device_);
  std::swap(kind_, other.kind_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Event::Event(const Machine& machine) : machine_(&machine) {
  check(machine.backend().streams->create_event(machine.handle(), &event_), "making an event");
}

Event::~Event() {
  if (event_ != nullptr) machine_->backend().streams->destroy_event(event_);
}

Event::Event(Event&& other) noexcept
    : machine_(other.machine_), event_(std::exchange(other.event_, nullptr)) {}

bool Event::synchronize(double seconds) const {
  const tandem_status status = machine_->backend().streams->synchronize(event_, seconds);
  if (status == TANDEM_TIMEOUT && seconds >= 0) {
    static_cast<void>(take_reason());
    return false;
  }
  check(status, fmt::format("devices '{}'", machine_->kind()));
  return true;
}

double Event::time() const {
  double seconds = 0;
  check(machine_->backend().streams->event_time(event_, &seconds), "the time of an event");
  return seconds;
}

Graph::~Graph() {
  if (graph_ != nullptr) machine_->backend().capture->destroy_graph(graph_);
}

Graph::Graph(Graph&& other) noexcept
    : machine_(other.machine_), graph_(std::exchange(other.graph_, nullptr)) {}

Stream::Stream(const Machine& machine, int device, int priority, const std::string& name)
    : machine_(&machine), device_(device) {
  check(machine.backend().streams->create_stream(machine.handle(), device, priority, name.c_str(),
                                                 &stream_),
        fmt::format("stream '{}' of {}:{}", name, machine.kind(), device));
}

Stream::~Stream() {
  if (stream_ != nullptr) machine_->backend().streams->destroy_stream(stream_);
}

Stream::Stream(Stream&& other) noexcept
    : machine_(other.machine_),
      device_(other.device_),
      stream_(std::exchange(other.stream_, nullptr)) {}

void Stream::submit(const tandem_work& work) const {
  check(machine_->backend().streams->submit(stream_, &work),
        fmt::format("task '{}'", work.label == nullptr ? "" : work.label));
}

void Stream::copy(const char* label, int target_device, void* target, int source_device,
                  const void* source, int64_t bytes) const {
  check(machine_->backend().streams->copy(stream_, label, target_device, target, source_device,
                                          source, bytes),
        fmt::format("copy '{}'", label == nullptr ? "" : label));
}

void Stream::copy_rows(const char* label, const tandem_rows& rows) const {
  if (const auto at_once = machine_->backend().streams->copy_rows;
      at_once != nullptr && rows.row_count > 1) {
    return check(at_once(stream_, label, &rows),
                 fmt::format("copy '{}'", label == nullptr ? "" : label));
  }
  for (int64_t row = 0; row < rows.row_count; ++row) {
    copy(label, rows.target_device, static_cast<std::byte*>(rows.target) + row * rows.target_stride,
         rows.source_device, static_cast<const std::byte*>(rows.source) + row * rows.source_stride,
         rows.row_bytes);
  }
}

void Stream::wait(const Event& event) const {
  check(machine_->backend().streams->wait(stream_, event.handle()), "waiting for an event");
}

void Stream::record(const Event& event) const {
  check(machine_->backend().streams->record(stream_, event.handle()), "recording an event");
}

void Stream::begin_capture() const {
  require_graphs(*machine_);
  check(machine_->backend().capture->begin(stream_), "beginning a capture");
}

Graph Stream::end_capture() const {
  require_graphs(*machine_);
  tandem_graph* graph = nullptr;
  check(machine_->backend().capture->end(stream_, &graph), "a capture");
  return {*machine_, graph};
}

void Stream::launch(const char* label, const Graph& graph) const {
  require_graphs(*machine_);
  check(machine_->backend().capture->launch(stream_, label, graph.handle()),
        fmt::format("graph '{}'", label == nullptr ? "" : label));
}

void Stream::synchronize() const {
  const Event event(*machine_);
  record(event);
  event.synchronize(-1);
}

}  // namespace tandem
