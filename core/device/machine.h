// RAII over a backend's table: a machine of devices opened together, its streams, events and
// memory. Nothing here knows which backend it is. Every failing call throws Error with the call,
// device and reason.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/device/parse.h"
#include "core/device/topology.h"
#include "plugins/abi.h"

namespace tandem {

class Registry;

struct MachineOptions {
  int threads = 0;  // cpu: cores to share; 0: all
  LinkSpec link;
  uint64_t delay_seed = 0;  // random stream delays, a test mode; 0: none
  double delay_seconds = 0;
  bool paced = false;
  std::shared_ptr<const Topology> topology;  // instead of `link`; null: every pair is alike
};

// It computes nothing: works take their predicted times, and device memory is addresses only.
[[nodiscard]] inline bool has_virtual_time(const tandem_backend& backend) {
  return backend.streams->virtual_time != 0;
}
// The host reads and writes device memory, and all devices share it.
[[nodiscard]] inline bool is_host_addressable(const tandem_backend& backend) {
  return backend.buffers->host_addressable != 0;
}
// Its streams can wait for messages of other processes.
[[nodiscard]] inline bool sends_messages(const tandem_backend& backend) {
  return backend.streams->messages != 0;
}
// Some of its kernels compute in that dtype, or round factors of products to TF32.
[[nodiscard]] inline bool computes_in(const tandem_backend& backend, int32_t dtype) {
  return (backend.arithmetic->dtypes >> dtype & 1U) != 0;
}
[[nodiscard]] inline bool computes_tf32(const tandem_backend& backend) {
  return backend.arithmetic->tf32 != 0;
}

class Machine {
 public:
  Machine(const tandem_backend& backend, const DeviceSpec& devices, const MachineOptions& options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] const tandem_backend& backend() const { return backend_; }
  [[nodiscard]] tandem_machine* handle() const { return machine_; }
  [[nodiscard]] int device_count() const { return device_count_; }
  [[nodiscard]] std::string kind() const { return backend_.kind; }
  [[nodiscard]] bool has_virtual_time() const { return tandem::has_virtual_time(backend_); }
  [[nodiscard]] bool is_host_addressable() const { return tandem::is_host_addressable(backend_); }
  [[nodiscard]] tandem_device_info device_info(int device) const;
  // Whether begin_capture() works.
  [[nodiscard]] bool captures_graphs() const { return backend_.capture != nullptr; }
  // Its destructor will leave the backend's machine open: for when a work on a stream never ends.
  void abandon() { abandoned_ = true; }

 private:
  const tandem_backend& backend_;
  tandem_machine* machine_ = nullptr;
  int device_count_ = 0;
  bool abandoned_ = false;
};

// Whether samples should travel to its devices as bytes where the choice is free: these have memory
// of their own to copy to, and make floats of bytes.
[[nodiscard]] inline bool prefers_bytes(const tandem_backend& backend) {
  return !has_virtual_time(backend) && !is_host_addressable(backend) &&
         backend.arithmetic->convert_pixels != nullptr;
}

// Bytes on a device (or pinned on the host), freed with it.
class Memory {
 public:
  Memory() = default;
  Memory(const Machine& machine, int device, int32_t kind, int64_t bytes);

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(address_.get()); }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] int device() const { return address_.get_deleter().device; }

 private:
  struct Free {
    const Machine* machine;
    int device;
    int32_t kind;
    void operator()(void* address) const;
  };
  std::unique_ptr<void, Free> address_;
  int64_t bytes_ = 0;
};

class Event {
 public:
  explicit Event(const Machine& machine);

  [[nodiscard]] tandem_event* handle() const { return event_.get(); }
  // False if it is not reached within `seconds` (< 0: for ever, 0: ask). Throws what the machine's
  // first failing work said.
  bool synchronize(double seconds) const;
  [[nodiscard]] double time() const;

 private:
  const Machine* machine_ = nullptr;
  std::unique_ptr<tandem_event, void (*)(tandem_event*)> event_;
};

// Works and copies that were captured from streams, issued again as one by Stream::launch. Freed
// with it, which must be before its machine is closed and after its last launch is done.
class Graph {
 public:
  [[nodiscard]] tandem_graph* handle() const { return graph_.get(); }

 private:
  friend class Stream;
  Graph(const Machine& machine, tandem_graph* graph);

  std::unique_ptr<tandem_graph, void (*)(tandem_graph*)> graph_;
};

class Stream {
 public:
  Stream(const Machine& machine, int device, int priority, const std::string& name);
  void submit(const tandem_work& work) const;
  void copy(const char* label, int target_device, void* target, int source_device,
            const void* source, int64_t bytes) const;
  // As copy(), of all the rows; a copy for each where the backend has no other way.
  void copy_rows(const char* label, const tandem_rows& rows) const;
  void wait(const Event& event) const;
  void record(const Event& event) const;
  // What this thread issues on the stream in between, and on streams that wait for it, does not
  // happen but becomes the graph (tandem_capture has the rules). Throws what failed meanwhile, in
  // which case the capture has ended, too.
  void begin_capture() const;
  [[nodiscard]] Graph end_capture() const;
  // The whole graph, in the order of the stream.
  void launch(const char* label, const Graph& graph) const;
  // Everything issued so far is done.
  void synchronize() const;

 private:
  const Machine* machine_;
  std::unique_ptr<tandem_stream, void (*)(tandem_stream*)> stream_;
};

}  // namespace tandem
