// Times messages between the first devices of two ranks, on the way that those of a plan go: by
// links between the devices where all ranks have them, else through the host's memory, with the
// copies to and from it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "core/device/device_links.h"
#include "core/device/machine.h"

namespace tandem {

// Of messages or copies in one direction, while nothing else is sent.
struct LinkSpeed {
  double bandwidth = 0;  // bytes per second
  double latency = 0;    // seconds
};

class MessageTimes {
 public:
  struct Pair {
    int first = 0, second = 0;  // ranks
  };
  // Called by all ranks. `machine`: of this rank's devices. All outlives it.
  MessageTimes(const Registry& registry, const Machine& machine, const Communicator& ranks,
               std::vector<Pair> pairs);

  // As DeviceLinks::text(); "" where the host reaches the devices' memory.
  [[nodiscard]] std::string path() const;
  // Of that pair, on its two ranks; called by both of them at the same time.
  [[nodiscard]] LinkSpeed measure(size_t pair);

 private:
  [[nodiscard]] double one_way_seconds(size_t pair, int rounds, int64_t bytes);
  void send(size_t pair, int64_t bytes);
  void receive(size_t pair, int64_t bytes);
  void transfer(int channel, int64_t bytes);
  // Until what the stream has been given is done.
  void finish(size_t pair);
  [[nodiscard]] bool begins(size_t pair) const;
  [[nodiscard]] int peer(size_t pair) const;

  // As the context of a work.
  struct Transfer {
    std::shared_ptr<DeviceLink> link;
    void* memory;
    int64_t bytes;
    static tandem_status run(void* context, const tandem_call* call);
  };

  const Machine& machine_;
  const Communicator& ranks_;
  const std::vector<Pair> pairs_;
  std::deque<Transfer> transfers_;             // that the stream may still come to
  std::vector<std::byte> plain_;               // where the host reaches the devices' memory
  std::optional<Memory> on_device_, on_host_;  // elsewhere
  std::optional<Stream> stream_;
  std::optional<DeviceLinks> links_;  // last: its end lets go of what the stream waits for
};

}  // namespace tandem
