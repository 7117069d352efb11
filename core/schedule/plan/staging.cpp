#include "core/schedule/plan/staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tandem {

namespace {

RankMessage* message_of(Task& task) {
  if (auto* send = std::get_if<SendWork>(&task.work)) return send;
  return std::get_if<ReceiveWork>(&task.work);
}

bool is_on_device(const Plan& plan, const Region& region) {
  const Buffer& buffer = plan.buffers[size_t(region.buffer)];
  return buffer.device >= 0 && !buffer.is_extended && plan.bytes(region) > 0;
}

}  // namespace

void stage_messages(Plan& part) {
  std::map<std::pair<int, StreamKind>, int> staging;  // by stream: the buffer
  for (Task& task : part.tasks) {
    RankMessage* message = message_of(task);
    if (message == nullptr) continue;
    const std::vector<Region>& regions = message->regions;
    if (std::none_of(regions.begin(), regions.end(),
                     [&](const Region& region) { return is_on_device(part, region); })) {
      continue;
    }
    const StreamId& stream = task.streams[0];
    const auto [entry, is_new] =
        staging.try_emplace({stream.device, stream.kind}, static_cast<int>(part.buffers.size()));
    if (is_new) {
      Buffer buffer;
      buffer.name = fmt::format("messages {} @{}", to_string(stream.kind), stream.device);
      buffer.device = -1;
      part.buffers.push_back(std::move(buffer));
    }
    int64_t bytes = 0;
    for (const Region& region : regions) bytes += part.bytes(region);
    Buffer& buffer = part.buffers[size_t(entry->second)];
    buffer.bytes = std::max(buffer.bytes, bytes);
    message->staging = {entry->second, 0, bytes};
    task.writes.push_back(message->staging);
  }
}

}  // namespace tandem
