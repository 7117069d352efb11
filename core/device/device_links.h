// Messages between devices of two ranks that never touch the host's memory: one link for each
// channel of a plan, between the devices of its two ends. Either all ranks have all their links or
// none has any; then messages go through the host's memory, and every rank knows why.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/device/communicator.h"
#include "core/device/device_link.h"
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
  // Nothing issues on a link afterwards: what a stream comes to later fails.
  ~DeviceLinks();
  DeviceLinks(const DeviceLinks&) = delete;
  DeviceLinks& operator=(const DeviceLinks&) = delete;

  [[nodiscard]] bool are_open() const { return refusal_.empty(); }
  // "messages between devices: ACME 1.2", or why they go through the host's memory.
  [[nodiscard]] std::string text() const;

  // For works of the channel's stream, which may keep it. A transfer that waits for the other rank
  // for longer than the watchdog allows fails with the rank.
  [[nodiscard]] std::shared_ptr<DeviceLink> link(int channel) const;
  // Error if a link has failed: what waits for it may never end.
  void check() const;
  // What was issued on the links ends, and later transfers fail. On any thread.
  void abort();

 private:
  struct Link {
    End end;
    std::shared_ptr<DeviceLink> open;
  };

  void open_all(const Ends& ends);
  // Returns why it failed; "" if it did not.
  [[nodiscard]] std::string open(int channel, const End& end, const std::string& failure);
  void watch();
  void close_all();

  const Machine& machine_;
  const Communicator& ranks_;
  const tandem_device_transport* transport_ = nullptr;
  std::string refusal_;
  std::map<int, Link> links_;  // by channel
  mutable std::mutex mutex_;   // of links_, which stay as opened, and of the flags
  std::condition_variable changed_;
  bool is_aborted_ = false, is_closing_ = false;
  std::thread watching_;  // last: it uses the others
};

}  // namespace tandem
