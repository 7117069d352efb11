// One end of a link between devices of two ranks, as works of streams hold it: also after it is
// closed, when every transfer fails and touches nothing of the transport. A transfer that waits for
// the other rank is given up when it has been looked at often enough.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "plugins/abi.h"

namespace tandem {

class DeviceLink {
 public:
  // `expired`: the reason of a transfer that was given up.
  DeviceLink(const tandem_device_transport& transport, tandem_device_link* handle,
             std::string expired);
  // As after abort(), without waiting for the other end, unless it is closed.
  ~DeviceLink();
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  // In a work of the link's stream, for device memory.
  [[nodiscard]] tandem_status transfer(const tandem_call& call, void* memory, int64_t bytes);
  // Whether the link works.
  [[nodiscard]] tandem_status check();
  // What was issued ends, and later transfers fail. On any thread.
  void abort();
  // When no transfer is under way any more. Waits at most that long for the other end.
  void close(double seconds);

  // Of one thread, at equal intervals: gives a transfer up with the look after which it has been
  // under way for `most` intervals.
  void look(int most);

 private:
  const tandem_device_transport& transport_;
  const std::string expired_;
  std::mutex in_use_;              // by a transfer, or by close()
  std::mutex handle_mutex_;        // of handle_, which in_use_ keeps open
  tandem_device_link* handle_;     // null: closed
  std::atomic<int64_t> turns_{0};  // odd: a transfer is under way
  std::atomic<bool> has_expired_{false};
  int64_t looked_at_ = 0;
  int looks_ = 0;
};

}  // namespace tandem
