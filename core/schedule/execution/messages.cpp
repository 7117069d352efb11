#include "core/schedule/execution/messages.h"

#include <algorithm>
#include <utility>

#include "core/schedule/execution/joined_rows.h"

namespace tandem {

bool is_of_host(const std::vector<MessagePart>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [](const MessagePart& part) { return part.device == TANDEM_HOST; });
}

std::vector<tandem_rows> staging_copies(const std::vector<MessagePart>& parts,
                                        const MessagePart& staging, bool is_received) {
  std::vector<tandem_rows> copies;
  std::byte* at = staging.address;
  for (const MessagePart& part : parts) {
    copies.push_back(is_received
                         ? one_row(part.device, part.address, staging.device, at, part.bytes)
                         : one_row(staging.device, at, part.device, part.address, part.bytes));
    at += part.bytes;
  }
  return joined_rows(copies);
}

std::function<tandem_status(const tandem_call&)> link_call(const DeviceLinks& links,
                                                           const RankMessage& message,
                                                           const std::vector<MessagePart>& parts) {
  if (parts.empty()) return nullptr;
  return [link = links.link(message.channel), part = parts.front()](const tandem_call& call) {
    return link->transfer(call, part.address, part.bytes);
  };
}

std::function<tandem_status(const tandem_call&)> message_call(
    const Communicator& ranks, const RankMessage& message, bool is_received,
    const std::vector<MessagePart>& parts) {
  std::vector<tandem_part> memory;
  for (const MessagePart& part : parts) memory.push_back({part.address, part.bytes});
  const tandem_transport& transport = ranks.transport();
  return [function = is_received ? transport.receive : transport.send, handle = ranks.handle(),
          peer = message.peer, channel = Communicator::channel_of(message.channel),
          memory = std::move(memory)](const tandem_call&) {
    return function(handle, peer, channel, memory.data(), static_cast<uint32_t>(memory.size()));
  };
}

}  // namespace tandem
