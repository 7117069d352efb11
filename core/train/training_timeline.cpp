#include "core/train/training_timeline.h"

#include "core/base/files.h"

namespace tandem {
namespace {

constexpr int64_t traced_batches = 4;

}  // namespace

TrainingTimeline::TrainingTimeline(Session& session, int64_t first, int64_t end, std::string file)
    : session_(session),
      begin_(first + (end - first > 2 * traced_batches ? traced_batches - 1 : 0)),
      file_(std::move(file)) {}

int64_t TrainingTimeline::end() const {
  return begin_ + traced_batches;
}

void TrainingTimeline::ask(LoaderOptions* loading) const {
  loading->timed_from = begin_;
  loading->timed_count = traced_batches + ring_slots;
}

void TrainingTimeline::compare_clocks() {
  const Event event(session_.machine());
  session_.runtime().stream({0, StreamKind::copy}).record(event);
  event.synchronize(-1);
  same_time_ = {std::chrono::steady_clock::now(), event.time()};
}

void TrainingTimeline::add(int64_t batch, const Loader& loader) {
  if (batch < begin_ || batch >= end()) return;
  const std::vector<TraceEvent> events = session_.training().executor->trace(batch);
  events_.insert(events_.end(), events.begin(), events.end());
  if (batch + 1 == end()) write(loader);
}

std::vector<HostSpan> TrainingTimeline::loading_spans(const Loader& loader) const {
  const auto machine_time = [&](std::chrono::steady_clock::time_point at) {
    return same_time_.second + std::chrono::duration<double>(at - same_time_.first).count();
  };
  std::vector<HostSpan> spans;
  for (const LoadSpan& one : loader.spans()) {
    spans.push_back({fmt::format("decoder {}", one.thread), fmt::format("load batch {}", one.batch),
                     machine_time(one.begin), machine_time(one.end)});
  }
  return spans;
}

void TrainingTimeline::write(const Loader& loader) {
  if (events_.empty() || file_.empty()) return;
  write_text_file(file_, to_chrome_trace(session_.training().plan, events_, loading_spans(loader)));
  events_.clear();
}

}  // namespace tandem
