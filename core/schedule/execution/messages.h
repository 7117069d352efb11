// A message between ranks as calls of the transport, and as copies to and from the host's memory
// where that of the devices cannot be addressed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/communicator.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// Bytes of one device, or of the host (TANDEM_HOST).
struct MessagePart {
  int device = TANDEM_HOST;
  std::byte* address = nullptr;
  int64_t bytes = 0;
};

[[nodiscard]] bool is_of_host(const std::vector<MessagePart>& parts);

// Between the parts and that memory of the host, where they lie one after the other.
[[nodiscard]] std::vector<tandem_rows> staging_copies(const std::vector<MessagePart>& parts,
                                                      std::byte* staging, bool is_received);

// Sends the parts, or receives them, and returns when their memory may be used again.
[[nodiscard]] std::function<tandem_status(const tandem_call&)> message_call(
    const Communicator& ranks, const RankMessage& message, bool is_received,
    const std::vector<MessagePart>& parts);

}  // namespace tandem
