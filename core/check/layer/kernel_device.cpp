#include "core/check/layer/kernel_device.h"

#include <algorithm>
#include <cmath>

#include "core/plugin/host.h"

namespace tandem::checker {

// A machine with one stream.
struct BackendDevice::Rig {
  Rig(const tandem_backend& table, int32_t threads) : backend(table) {
    const int32_t first = 0;
    tandem_machine_options options{};
    options.struct_size = sizeof options;
    options.device_count = 1;
    options.ordinals = &first;
    options.threads = threads;
    require(backend.open(&options, &machine));
    require(backend.streams->create_stream(machine, 0, 1, "compute", &stream));
    require(backend.streams->create_event(machine, &event));
    require(backend.streams->create_event(machine, &begun));
    // In a run, kernels are prepared by works of this kind. It makes the stream of a GPU create its
    // library handles.
    submit(TANDEM_WORK_HOST, [](const tandem_call*) { return tandem_status{TANDEM_OK}; });
  }
  ~Rig() {
    if (stream != nullptr) backend.streams->destroy_stream(stream);
    for (tandem_event* one : {event, begun}) {
      if (one != nullptr) backend.streams->destroy_event(one);
    }
    if (machine != nullptr) backend.close(machine);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  void require(tandem_status status) const { check(status, backend.kind); }
  void wait() const {
    require(backend.streams->record(stream, event));
    require(backend.streams->synchronize(event, -1));
  }

  [[nodiscard]] void* allocate(int64_t bytes) const {
    void* address = nullptr;
    require(backend.buffers->allocate(machine, 0, TANDEM_MEMORY_DEVICE, bytes, &address));
    return address;
  }
  void free(void* address) const {
    backend.buffers->free(machine, 0, TANDEM_MEMORY_DEVICE, address);
  }
  void copy(const char* label, int32_t target_device, void* target, int32_t source_device,
            const void* source, int64_t bytes) const {
    require(
        backend.streams->copy(stream, label, target_device, target, source_device, source, bytes));
    wait();
  }

  // From the record of `begun` to that of `event`.
  [[nodiscard]] double seconds() const {
    double from = 0, to = 0;
    require(backend.streams->event_time(begun, &from));
    require(backend.streams->event_time(event, &to));
    return to - from;
  }

  // If the work refuses, this must not fail the machine, which later calls use.
  struct Issued {
    const Work& function;
    tandem_status status = TANDEM_OK;
    std::string reason{};
  };
  [[nodiscard]] tandem_status issue(int32_t kind, Issued& kept) const {
    tandem_work work{};
    work.struct_size = sizeof work;
    work.kind = kind;
    work.label = "checked";
    work.predicted_seconds = -1;
    work.run = [](void* context, const tandem_call* call) {
      auto& kept = *static_cast<Issued*>(context);
      kept.status = kept.function(call);
      kept.reason = take_reason();
      return tandem_status{TANDEM_OK};
    };
    work.context = &kept;
    return backend.streams->submit(stream, &work);
  }
  tandem_status submit(int32_t kind, const Work& function) const {
    Issued kept{function};
    require(backend.streams->record(stream, begun));
    require(issue(kind, kept));
    wait();
    host_table().explain(kept.reason.c_str());
    return kept.status;
  }
  tandem_status capture(const Work& function) const {
    Issued kept{function};
    tandem_graph* graph = nullptr;
    require(backend.capture->begin(stream));
    if (const tandem_status issued = issue(TANDEM_WORK_COMPUTE, kept); issued != TANDEM_OK) {
      kept.status = issued;
      kept.reason = take_reason();
    }
    // Also after a failure: the stream must not go on capturing.
    const tandem_status ended = backend.capture->end(stream, &graph);
    const std::string reason = take_reason();
    if (ended != TANDEM_OK || kept.status != TANDEM_OK) {
      if (ended == TANDEM_OK) backend.capture->destroy_graph(graph);
      const bool is_refusal = kept.status != TANDEM_OK;
      host_table().explain((is_refusal ? kept.reason : reason).c_str());
      return is_refusal ? kept.status : ended;
    }
    const std::unique_ptr<tandem_graph, void (*)(tandem_graph*)> owned(
        graph, backend.capture->destroy_graph);
    require(backend.capture->launch(stream, "checked", graph));
    wait();
    return TANDEM_OK;
  }

  const tandem_backend& backend;
  tandem_machine* machine = nullptr;
  tandem_stream* stream = nullptr;
  tandem_event *event = nullptr, *begun = nullptr;
};

BackendDevice::BackendDevice(const tandem_backend& backend) : backend_(backend) {
  static_cast<void>(rig(1));  // refuses now
}
BackendDevice::~BackendDevice() = default;

BackendDevice::Rig& BackendDevice::rig(int32_t threads) {
  std::unique_ptr<Rig>& rig = rigs_[has_own_memory() ? 0 : threads];
  if (rig == nullptr) rig = std::make_unique<Rig>(backend_, threads);
  return *rig;
}

void* BackendDevice::allocate(int64_t bytes) {
  return rig(1).allocate(bytes);
}
void BackendDevice::free(void* address) {
  rig(1).free(address);
}
void BackendDevice::upload(const void* host, void* device, int64_t bytes) {
  rig(1).copy("upload", 0, device, TANDEM_HOST, host, bytes);
}
void BackendDevice::download(const void* device, void* host, int64_t bytes) {
  rig(1).copy("download", TANDEM_HOST, host, 0, device, bytes);
}
tandem_status BackendDevice::run(int32_t threads, const Work& work) {
  const Rig& r = rig(threads);
  if (is_capturing_) return r.capture(work);
  const tandem_status status = r.submit(TANDEM_WORK_COMPUTE, work);
  const std::string reason = take_reason();
  seconds_ += r.seconds();  // whose calls take a reason, too
  host_table().explain(reason.c_str());
  return status;
}

double BackendDevice::seconds_of_copy(int32_t threads, int64_t bytes) {
  const Rig& r = rig(threads);
  const auto free = [&](void* address) { r.free(address); };
  using Memory = std::unique_ptr<void, decltype(free)>;
  const Memory source(r.allocate(bytes), free), target(r.allocate(bytes), free);
  double least = INFINITY;
  for (int i = 0; i < 6; ++i) {  // the first touches the memory
    r.require(backend_.streams->record(r.stream, r.begun));
    r.copy("copy", 0, target.get(), 0, source.get(), bytes);
    least = std::min(least, r.seconds());
  }
  return least;
}

BackendDevice& OpenDevices::of(const std::string& kind) {
  const auto refused = refusals_.find(kind);
  if (refused != refusals_.end()) throw Error(refused->second);
  std::unique_ptr<BackendDevice>& device = devices_[kind];
  if (device != nullptr) return *device;
  try {
    device = std::make_unique<BackendDevice>(registry_.backend(kind));
  } catch (const Error& failure) {
    refusals_[kind] = failure.what();
    throw;
  }
  return *device;
}

std::vector<BackendDevice*> OpenDevices::more_of(const std::string& kind, size_t count) {
  std::vector<std::unique_ptr<BackendDevice>>& opened = more_[kind];
  while (opened.size() < count) {
    opened.push_back(std::make_unique<BackendDevice>(registry_.backend(kind)));
  }
  std::vector<BackendDevice*> devices;
  for (size_t i = 0; i < count; ++i) devices.push_back(opened[i].get());
  return devices;
}

OnDevice::~OnDevice() {
  for (const Copy& copy : copies_) {
    try {
      device_->download(copy.device, copy.host, copy.bytes);
    } catch (const std::exception&) {
      // Of a device that has failed, and whose failure the call has reported.
    }
    device_->free(copy.device);
  }
}

void* OnDevice::at(const void* data) {
  if (data == nullptr || !device_->has_own_memory()) return const_cast<void*>(data);
  for (const Copy& copy : copies_) {
    if (copy.data == data) return copy.device + GuardedMemory::guard;
  }
  const int64_t bytes = GuardedMemory::bytes_of(data) + 2 * int64_t{GuardedMemory::guard};
  auto* host = static_cast<unsigned char*>(const_cast<void*>(data)) - GuardedMemory::guard;
  auto* memory = static_cast<unsigned char*>(device_->allocate(bytes));
  device_->upload(host, memory, bytes);
  copies_.push_back({data, host, memory, bytes});
  return memory + GuardedMemory::guard;
}

std::vector<void*> OnDevice::at(const std::vector<void*>& data) {
  std::vector<void*> result;
  for (const void* one : data) result.push_back(at(one));
  return result;
}

}  // namespace tandem::checker
