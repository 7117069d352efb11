#include "core/schedule/plan/staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tandem {
namespace {

RankMessage* message_of(Task& task) {
  if (auto* send = std::get_if<SendWork>(&task.work)) return send;
  return std::get_if<ReceiveWork>(&task.work);
}

bool is_on_device(const Plan& plan, const Region& region) {
  const Buffer& buffer = plan.buffer(region.buffer);
  return buffer.device >= 0 && !buffer.is_extended && plan.bytes(region) > 0;
}

// Whether the transport takes the regions as they are.
bool is_reached(const Plan& plan, const RankMessage& message, const StreamId& stream) {
  int64_t pieces = 0;
  for (const Region& region : message.regions) {
    if (plan.bytes(region) == 0) continue;
    if (!message.by_link && is_on_device(plan, region)) return false;
    pieces += plan.buffer(region.buffer).device == stream.device ? 1 : 2;
  }
  return !message.by_link || pieces <= 1;
}

}  // namespace

void stage_messages(Plan& part) {
  // By stream, and by whether it is for links: the buffer.
  std::map<std::tuple<int, StreamKind, bool>, int> staging;
  for (Task& task : part.tasks) {
    RankMessage* message = message_of(task);
    const StreamId& stream = task.streams[0];
    if (message == nullptr || is_reached(part, *message, stream)) continue;
    const auto [entry, is_new] = staging.try_emplace({stream.device, stream.kind, message->by_link},
                                                     static_cast<int>(part.buffers.size()));
    if (is_new) {
      Buffer buffer;
      buffer.name = fmt::format("messages {} @{}", to_string(stream.kind), stream.device);
      buffer.device = message->by_link ? stream.device : -1;
      part.buffers.push_back(std::move(buffer));
    }
    const int64_t bytes = part.bytes(message->regions);
    Buffer& buffer = part.buffer(entry->second);
    buffer.bytes = std::max(buffer.bytes, bytes);
    message->staging = {entry->second, 0, bytes};
    task.writes.push_back(message->staging);
  }
}

}  // namespace tandem
