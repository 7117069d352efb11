// One rank's part of a plan, where several processes ("ranks") have its devices. What runs then is
// the plan of one process: every task with its memory on its own rank, every copy between ranks as
// a message.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/plan/plan.h"

namespace tandem {

// Which rank has each device of a plan.
struct DeviceRanks {
  std::vector<int> of_device;

  [[nodiscard]] int count() const;            // of ranks
  [[nodiscard]] int local(int device) const;  // its number among the devices of its rank
};
// The first `devices_each` devices are rank 0's, the next ones rank 1's, and so on.
[[nodiscard]] DeviceRanks equal_ranks(int ranks, int devices_each);

// How messages of device memory travel: the transport of the host reaches it; through the host's
// memory; or, where both ends are on devices, by their links, and else through the host's memory.
enum class MessagePath { direct, host, links };

// What `rank` runs of a plan for all devices: its own tasks, buffers and bindings, with the numbers
// that its devices have among themselves. External buffers are on every rank; the host's other
// buffers are rank 0's. A copy between ranks is a send on the streams that it occupies on the
// source's rank and a receive on those of the target's. On every channel both sides have the same
// messages in the same order, that of the plan; so the order of all messages is one order, and
// ranks that wait for each other's messages never wait in a circle. `weights_at` and `state_at`
// keep the entries of the rank's devices. Dependencies are derived anew. Messages go as `path` says
// (staging.h). Error if a task that is no copy touches memory of two ranks, or if a rank has no
// device.
[[nodiscard]] Plan localize(const Plan& plan, const DeviceRanks& ranks, int rank,
                            MessagePath path = MessagePath::direct);

// A number that differs, but for an accident, between plans that are not the same.
[[nodiscard]] uint64_t fingerprint(const Plan& plan);

}  // namespace tandem
