#include "core/schedule/kernels/runtime.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "core/base/text/strings.h"
#include "core/device/mapped_file.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {
namespace {

constexpr int high_priority = 1;

size_t index_of(StreamId id) {
  return size_t(id.device * stream_kinds + static_cast<int>(id.kind));
}

// A work that clears memory. It does not run where there is no memory (sim) and is not needed where
// the memory is new (paced).
struct Clear {
  const tandem_backend* backend;
  bool on_host;
  void* address;
  int64_t bytes;

  static tandem_status run(void* context, const tandem_call* call) {
    const Clear& clear = *static_cast<Clear*>(context);
    if (clear.on_host) {
      std::memset(clear.address, 0, size_t(clear.bytes));
      return TANDEM_OK;
    }
    return clear.backend->arithmetic->fill(call, static_cast<float*>(clear.address), 0,
                                           clear.bytes / buffers::float_bytes);
  }
};

}  // namespace

struct Runtime::State {
  explicit State(Machine& machine) : machine(machine) {
    const int devices = machine.device_count();
    for (int device = 0; device < devices; ++device) {
      available.push_back(machine.device_info(device).available_bytes);
      for (const StreamKind kind :
           {StreamKind::compute, StreamKind::communication, StreamKind::copy}) {
        make({device, kind});
      }
    }
    transient.resize(size_t(devices));
  }

  // The host's memory is pinned memory of the first device.
  [[nodiscard]] Memory allocate(int device, int64_t bytes) const {
    return device < 0 ? Memory(machine, 0, TANDEM_MEMORY_PINNED, bytes)
                      : Memory(machine, device, TANDEM_MEMORY_DEVICE, bytes);
  }
  [[nodiscard]] const Stream& copy_stream(int device) const {
    return streams.at(index_of({std::max(device, 0), StreamKind::copy}));
  }
  // A stream is a thread on some machines, so only those that plans use are made.
  void make(StreamId id) {
    if (streams.contains(index_of(id))) return;
    const bool first = id.kind == StreamKind::compute || id.kind == StreamKind::control;
    streams.try_emplace(index_of(id), machine, id.device, first ? high_priority : 0,
                        fmt::format("{} {}", to_string(id.kind), id.device));
  }
  [[nodiscard]] Memory& arena(int device) {
    return device < 0 ? host_transient : transient[size_t(device)];
  }

  [[nodiscard]] std::vector<int64_t> new_persistent(const Plan& plan) const;
  void forecast(const Plan& plan, const MemoryPlan& memory, int64_t batch);
  void require(const std::string& who, int64_t persistent, int64_t transient, int64_t available,
               int64_t batch) const;
  void make(const Buffer& buffer);
  void make_extended(const Buffer& buffer);
  void clear(int device, const Memory& memory) const;
  void grow(int device, int64_t bytes);
  [[nodiscard]] std::byte* range(const std::string& name, int device, int64_t bytes,
                                 int64_t offset) const;

  Machine& machine;
  std::vector<int64_t> available;  // when the machine was taken over
  int64_t prefetched = 0;          // bytes of the rings that feed the plans reserved so far

  using Key = std::pair<std::string, int>;  // name, device
  std::map<Key, Memory> persistent;
  // Not in the memory that its device usually has.
  static bool is_outside(const Buffer& buffer) {
    return buffer.is_extended || !buffer.memory.empty();
  }
  // Extended memory is a file where the host's memory is the device's, else pinned host memory.
  struct Extended {
    Memory pinned;
    MappedFile file;
    [[nodiscard]] std::byte* data() const { return file.data() ? file.data() : pinned.data(); }
    [[nodiscard]] int64_t bytes() const { return file.data() ? file.bytes() : pinned.bytes(); }
  };
  std::map<Key, Extended> extended;
  std::vector<Memory> transient;
  Memory host_transient;
  std::map<size_t, Stream> streams;  // last: they end before the memory they use is freed
};

// One entry a device, then the host's.
std::vector<int64_t> Runtime::State::new_persistent(const Plan& plan) const {
  std::vector<int64_t> bytes(size_t(machine.device_count()) + 1);
  for (const Buffer& buffer : plan.buffers) {
    const Key key(buffer.name, buffer.device);
    if (buffer.kind != BufferKind::persistent || is_outside(buffer) || extended.contains(key)) {
      continue;
    }
    const auto found = persistent.find(key);
    if (found == persistent.end()) {
      (buffer.device < 0 ? bytes.back() : bytes[size_t(buffer.device)]) += total_bytes(buffer);
    } else if (found->second.bytes() != total_bytes(buffer)) {
      throw error("buffer '{}' of device {} has {} bytes in this plan, {} in an earlier one",
                  buffer.name, buffer.device, total_bytes(buffer), found->second.bytes());
    }
  }
  return bytes;
}

void Runtime::State::require(const std::string& who, int64_t persistent, int64_t transient,
                             int64_t available, int64_t batch) const {
  if (persistent + transient <= available) return;
  std::string advice;
  if (batch > 0 && transient > 0) {
    // Activations grow with the batch, weights do not.
    const double room = static_cast<double>(std::max<int64_t>(available - persistent, 0));
    const auto fits =
        static_cast<int64_t>(static_cast<double>(batch) * room / static_cast<double>(transient));
    advice = fits > 0 ? fmt::format("; batch {} fits", fits) : "; not even batch 1 fits";
  }
  throw error("{} {}, {} are available{}", who, human_bytes(persistent + transient),
              human_bytes(available), advice);
}

void Runtime::State::forecast(const Plan& plan, const MemoryPlan& memory, int64_t batch) {
  std::vector<int64_t> persistent_bytes = new_persistent(plan);
  for (const auto& [key, held] : persistent) {
    (key.second < 0 ? persistent_bytes.back() : persistent_bytes[size_t(key.second)]) +=
        held.bytes();
  }
  const bool shares_memory = machine.is_host_addressable();
  // While a run evaluates, the rings of both phases are full.
  prefetched += memory.prefetched_bytes;
  int64_t all_persistent = persistent_bytes.back(), all_transient = prefetched;
  for (int device = 0; device < plan.devices; ++device) {
    const auto i = size_t(device);
    const int64_t needed = std::max(memory.transient_bytes[i], transient[i].bytes());
    all_persistent += persistent_bytes[i];
    all_transient += needed;
    if (shares_memory) continue;
    require(fmt::format("device {} ({}) needs", device, machine.kind()), persistent_bytes[i],
            needed, available[i], batch);
  }
  // These devices and the host share one memory.
  if (!shares_memory) return;
  require(plan.devices == 1 ? fmt::format("device 0 ({}) needs", machine.kind())
                            : fmt::format("the {} devices ({}) need", plan.devices, machine.kind()),
          all_persistent, all_transient, available[0], batch);
}

void Runtime::State::make_extended(const Buffer& buffer) {
  const Key key(buffer.name, buffer.device);
  const int64_t bytes = total_bytes(buffer);
  if (extended.contains(key) || bytes == 0) return;
  if (machine.is_host_addressable()) {
    extended[key] = {Memory(), MappedFile(bytes, buffer.memory)};
    return;
  }
  if (!buffer.memory.empty() && !machine.has_virtual_time()) {
    throw error(
        "memory '{}': {} devices have memory of their own and do not address it; what they can "
        "use is 'extended', pinned memory of the host",
        buffer.memory, machine.kind());
  }
  Extended& memory = extended[key] = {allocate(TANDEM_HOST, bytes), MappedFile()};
  if (!machine.has_virtual_time()) std::memset(memory.data(), 0, size_t(bytes));
}

void Runtime::State::clear(int device, const Memory& memory) const {
  const Stream& stream = copy_stream(device);
  Clear clear{&machine.backend(), device < 0, memory.data(), memory.bytes()};
  stream.submit({sizeof(tandem_work), TANDEM_WORK_COMPUTE, "clear", 0, &Clear::run, &clear});
  stream.synchronize();
}

void Runtime::State::make(const Buffer& buffer) {
  if (is_outside(buffer)) return make_extended(buffer);
  const std::pair key(buffer.name, buffer.device);
  const int64_t bytes = total_bytes(buffer);
  const auto initial_bytes = static_cast<int64_t>(buffer.initial.size() * sizeof(float));
  if (persistent.contains(key) || extended.contains(key) || bytes == 0) return;
  if (initial_bytes > buffer.bytes) {
    throw error("buffer '{}' of device {} starts with {} floats, but has {} bytes", buffer.name,
                buffer.device, buffer.initial.size(), buffer.bytes);
  }
  const Memory& memory = persistent.emplace(key, allocate(buffer.device, bytes)).first->second;
  clear(buffer.device, memory);
  const Stream& stream = copy_stream(buffer.device);
  for (int slot = 0; slot < buffer.slots && !buffer.initial.empty(); ++slot) {
    stream.copy("initial values", buffer.device, memory.data() + slot * slot_stride(buffer),
                TANDEM_HOST, buffer.initial.data(), initial_bytes);
  }
  stream.synchronize();
}

void Runtime::State::grow(int device, int64_t bytes) {
  Memory& memory = arena(device);
  if (memory.bytes() >= bytes) return;
  memory = Memory();  // both at once might not fit
  memory = allocate(device, bytes);
  clear(device, memory);  // what a plan carries from micro-batch to micro-batch starts as zeros
}

std::byte* Runtime::State::range(const std::string& name, int device, int64_t bytes,
                                 int64_t offset) const {
  const auto found = persistent.find({name, device});
  const auto outside = extended.find({name, device});
  if (found == persistent.end() && outside == extended.end()) {
    throw error("device {} has no buffer '{}'", device, name);
  }
  const bool is_inside = found != persistent.end();
  const int64_t all = is_inside ? found->second.bytes() : outside->second.bytes();
  if (offset < 0 || bytes < 0 || offset > all - bytes) {
    throw error("bytes {} to {} exceed buffer '{}' of device {}, which has {}", offset,
                offset + bytes, name, device, all);
  }
  return (is_inside ? found->second.data() : outside->second.data()) + offset;
}

Runtime::Runtime(Machine& machine) : machine_(machine), state_(std::make_unique<State>(machine)) {}

Runtime::~Runtime() {
  if (abandoned_) static_cast<void>(state_.release());
}

void Runtime::abandon() {
  abandoned_ = true;
  machine_.abandon();
}

const Stream& Runtime::stream(StreamId id) const {
  const auto found = state_->streams.find(index_of(id));
  if (found != state_->streams.end()) return found->second;
  throw error("device {} has no {} stream: no plan that was reserved uses it", id.device,
              to_string(id.kind));
}

void Runtime::reserve(const Plan& plan, const MemoryPlan& memory, int64_t batch) {
  if (plan.devices > machine_.device_count()) {
    throw error("the plan is for {} devices, the machine has {}", plan.devices,
                machine_.device_count());
  }
  state_->forecast(plan, memory, batch);
  for (const Task& task : plan.tasks) {
    for (const StreamId& stream : task.streams) state_->make(stream);
  }
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.kind == BufferKind::persistent) state_->make(buffer);
  }
  for (int device = 0; device < plan.devices; ++device) {
    state_->grow(device, memory.transient_bytes[size_t(device)]);
  }
  const bool host_transients =
      std::any_of(plan.buffers.begin(), plan.buffers.end(),
                  [](const Buffer& b) { return b.device < 0 && b.kind == BufferKind::transient; });
  if (host_transients) state_->grow(-1, memory.host_bytes[0]);
}

std::byte* Runtime::persistent(const std::string& name, int device) const {
  const auto found = state_->persistent.find({name, device});
  if (found != state_->persistent.end()) return found->second.data();
  const auto outside = state_->extended.find({name, device});
  return outside == state_->extended.end() ? nullptr : outside->second.data();
}

std::byte* Runtime::transient(int device) const {
  return state_->arena(device).data();
}

void Runtime::write_persistent(const std::string& name, int device, const void* source,
                               int64_t bytes, int64_t offset) {
  std::byte* target = state_->range(name, device, bytes, offset);
  const Stream& stream = state_->copy_stream(device);
  const int to = state_->extended.contains({name, device}) ? TANDEM_HOST : device;
  stream.copy("write", to, target, TANDEM_HOST, source, bytes);
  stream.synchronize();
}

void Runtime::read_persistent(const std::string& name, int device, void* target, int64_t bytes,
                              int64_t offset) const {
  const std::byte* source = state_->range(name, device, bytes, offset);
  const Stream& stream = state_->copy_stream(device);
  const int from = state_->extended.contains({name, device}) ? TANDEM_HOST : device;
  stream.copy("read", TANDEM_HOST, target, from, source, bytes);
  stream.synchronize();
}

}  // namespace tandem
