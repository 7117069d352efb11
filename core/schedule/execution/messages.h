// A message between ranks as calls of a transport, and as copies to and from the memory through
// which it goes where the transport cannot take it from where it is.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/communicator.h"
#include "core/device/device_links.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// Bytes of one device, or of the host (TANDEM_HOST).
struct MessagePart {
  int device = TANDEM_HOST;
  std::byte* address = nullptr;
  int64_t bytes = 0;
};

[[nodiscard]] bool is_of_host(const std::vector<MessagePart>& parts);

// Between the parts and the staging, where they lie one after the other.
[[nodiscard]] std::vector<tandem_rows> staging_copies(const std::vector<MessagePart>& parts,
                                                      const MessagePart& staging, bool is_received);

// Puts the message, which is one part or none, on the stream.
[[nodiscard]] std::function<tandem_status(const tandem_call&)> link_call(
    const DeviceLinks& links, const RankMessage& message, const std::vector<MessagePart>& parts);

// Sends the parts, or receives them, and returns when their memory may be used again.
[[nodiscard]] std::function<tandem_status(const tandem_call&)> message_call(
    const Communicator& ranks, const RankMessage& message, bool is_received,
    const std::vector<MessagePart>& parts);

}  // namespace tandem
