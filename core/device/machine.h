// RAII over a backend's table: a machine of devices opened together, its streams, events and
// memory. Nothing here knows which backend it is. Every failing call throws Error with the call,
// device and reason.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/device/topology.h"
#include "plugins/abi.h"

namespace tandem {

class Registry;
class Graph;  // core/device/graph.h

// "cpu", "cpu:4", "sim:16", "cuda:0,1": kind and how many or which. For cpu and sim ":N" is a
// count, for cuda a list of ids. parse_devices() throws Error on anything else ("cpu:0", "gpu",
// "cpu:x"), naming the kinds.
constexpr int most_devices = 1024;  // of a machine
struct DeviceSpec {
  std::string kind = "cpu";
  std::vector<int32_t> ordinals{0};
  [[nodiscard]] int count() const { return static_cast<int>(ordinals.size()); }
};
[[nodiscard]] DeviceSpec parse_devices(const std::string& text,
                                       const std::vector<std::string>& kinds);
[[nodiscard]] std::string to_string(const DeviceSpec& spec);

// "bandwidth=4GB/s,latency=10us" (units: B/s kB/s MB/s GB/s; s ms us ns) -> bytes per second,
// seconds.
struct LinkSpec {
  double bandwidth = 0;
  double latency = 0;
};
[[nodiscard]] LinkSpec parse_link(const std::string& text);

// "4GB/s", "10us"; `where` begins the message of an Error: "link 'bandwidth=4'". At least 1kB/s, at
// most a million GB/s, and at most a minute.
[[nodiscard]] double parse_bandwidth(const std::string& value, const std::string& where);
[[nodiscard]] double parse_latency(const std::string& value, const std::string& where);

// "4MiB" -> bytes (units: B kB MB GB, KiB MiB GiB). Error, naming `option`, on anything else and on
// less than one byte.
[[nodiscard]] int64_t parse_size(const std::string& text, const std::string& option);

struct MachineOptions {
  int threads = 0;  // cpu: cores to share; 0: all
  LinkSpec link;
  uint64_t delay_seed = 0;  // random stream delays, a test mode; 0: none
  double delay_seconds = 0;
  bool paced = false;
  std::shared_ptr<const Topology> topology;  // instead of `link`; null: every pair is alike
};

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
  [[nodiscard]] tandem_device_info device_info(int device) const;
  // Its destructor will leave the backend's machine open: for when a work on a stream never ends.
  void abandon() { abandoned_ = true; }

 private:
  const tandem_backend& backend_;
  tandem_machine* machine_ = nullptr;
  int device_count_ = 0;
  bool abandoned_ = false;
};

// Bytes on a device (or pinned on the host), freed with it.
class Memory {
 public:
  Memory() = default;
  Memory(const Machine& machine, int device, int32_t kind, int64_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(address_); }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] int device() const { return device_; }

 private:
  const Machine* machine_ = nullptr;
  int device_ = 0;
  int32_t kind_ = 0;
  void* address_ = nullptr;
  int64_t bytes_ = 0;
};

class Event {
 public:
  explicit Event(const Machine& machine);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;

  [[nodiscard]] tandem_event* handle() const { return event_; }
  // False if it is not reached within `seconds` (< 0: for ever, 0: ask). Throws what the machine's
  // first failing work said.
  bool synchronize(double seconds) const;
  [[nodiscard]] double time() const;

 private:
  const Machine* machine_ = nullptr;
  tandem_event* event_ = nullptr;
};

class Stream {
 public:
  Stream(const Machine& machine, int device, int priority, const std::string& name);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;

  [[nodiscard]] int device() const { return device_; }
  void submit(const tandem_work& work) const;
  void copy(const char* label, int target_device, void* target, int source_device,
            const void* source, int64_t bytes) const;
  // As copy(), of all the rows; a copy for each where the backend has no other way.
  void copy_rows(const char* label, const tandem_rows& rows) const;
  void wait(const Event& event) const;
  void record(const Event& event) const;
  // What this thread issues on the stream in between, and on streams that wait for it, does not
  // happen but becomes the graph (abi.h has the rules). Throws what failed meanwhile, in which case
  // the capture has ended, too.
  void begin_capture() const;
  [[nodiscard]] Graph end_capture() const;
  // The whole graph, in the order of the stream.
  void launch(const char* label, const Graph& graph) const;
  // Everything issued so far is done.
  void synchronize() const;

 private:
  const Machine* machine_ = nullptr;
  int device_ = 0;
  tandem_stream* stream_ = nullptr;
};

}  // namespace tandem
