// Messages between devices of two ranks that never touch the host's memory: one link for each
// channel of a plan, between the devices of its two ends. Either all ranks have all their links or
// none has any; then messages go through the host's memory, and every rank knows why.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "core/device/machine.h"

namespace tandem {

class Registry;

class DeviceLinks {
 public:
  // This rank's end of a channel.
  struct End {
    int peer = -1;
    bool receives = false;
    int device = 0;
  };
  // By channel; both of its ranks have it.
  using Ends = std::map<int, End>;

  // Called by all ranks. The machine's streams are idle. All referred to outlives the links.
  DeviceLinks(const Registry& registry, const Machine& machine, const Communicator& ranks,
              const Ends& ends);
  // Waits for the other ranks to close theirs, unless this one has given up or an exception passes.
  ~DeviceLinks();
  DeviceLinks(const DeviceLinks&) = delete;
  DeviceLinks& operator=(const DeviceLinks&) = delete;

  [[nodiscard]] bool are_open() const { return refusal_.empty(); }
  // "messages between devices: ACME 1.2", or why they go through the host's memory.
  [[nodiscard]] std::string text() const;

  // In a work of the channel's stream, for device memory.
  [[nodiscard]] tandem_status transfer(int channel, const tandem_call& call, void* memory,
                                       int64_t bytes) const;
  // Error if a link has failed: what waits for it may never end.
  void check() const;

 private:
  struct Link {
    End end;
    tandem_device_link* handle = nullptr;
  };

  void open_all(const Ends& ends);
  // Returns why it failed; "" if it did not.
  [[nodiscard]] std::string open(int channel, const End& end, const std::string& failure);
  void abort();
  void close_all();

  const Machine& machine_;
  const Communicator& ranks_;
  const tandem_device_transport* transport_ = nullptr;
  std::string refusal_;
  std::map<int, Link> links_;  // by channel
  mutable std::mutex mutex_;   // of links_ and is_aborted_, which the watchdog's thread uses
  bool is_aborted_ = false;
};

}  // namespace tandem
