#include "core/session/training_timeline.h"

#include <set>

#include "core/base/files/files.h"
#include "core/schedule/report/slow_passes.h"

namespace tandem {
namespace {

constexpr int64_t traced_batches = 4;
// Of these the fastest tells how long a pass takes.
constexpr size_t batches_to_judge = 3;

}  // namespace

TrainingTimeline::TrainingTimeline(Session& session, int64_t first, int64_t end, std::string file)
    : session_(session),
      first_(first),
      begin_(first + (end - first > 2 * traced_batches ? traced_batches - 1 : 0)),
      file_(std::move(file)) {}

int64_t TrainingTimeline::end() const {
  return begin_ + traced_batches;
}

void TrainingTimeline::ask(LoaderOptions* loading) const {
  loading->timed_from = begin_;
  loading->timed_count = traced_batches + loading->slots;
}

void TrainingTimeline::compare_clocks() {
  clock_.emplace(session_);
  if (const Communicator* ranks = session_.options().ranks) {
    shift_ = tandem::compare_clocks(
        *ranks, [this] { return clock_->now(); }, clock_->uncertainty());
  }
}

void TrainingTimeline::add(int64_t batch, const Loader& loader) {
  if (batch < begin_ || batch >= end()) return;
  const std::vector<TraceEvent> events = session_.training().executor->trace(batch);
  events_.insert(events_.end(), events.begin(), events.end());
  if (batch + 1 == end()) write(loader);
}

std::vector<HostSpan> TrainingTimeline::loading_spans(const Loader& loader) const {
  std::vector<HostSpan> spans;
  for (const LoadSpan& one : loader.spans()) {
    spans.push_back({fmt::format("decoder {}", one.thread), fmt::format("load batch {}", one.batch),
                     clock_->at(one.begin), clock_->at(one.end)});
  }
  return spans;
}

void TrainingTimeline::find_slow_passes() {
  std::vector<TraceEvent> warm;
  std::set<int64_t> batches;
  for (const TraceEvent& event : events_) {
    if (event.micro_batch == first_) continue;
    warm.push_back(event);
    batches.insert(event.micro_batch);
  }
  if (batches.size() < batches_to_judge) return;
  const Phase& phase = session_.training();
  for (const SlowPass& slow : slow_passes(phase.net, phase.plan, warm)) {
    slow_.push_back(to_text(phase.net, slow));
  }
}

void TrainingTimeline::write(const Loader& loader) {
  if (events_.empty()) return;
  const Plan& plan = session_.training().plan;
  find_slow_passes();
  const std::vector<HostSpan> host = loading_spans(loader);
  std::string text;
  if (const Communicator* ranks = session_.options().ranks) {
    const JointTrace joint = gather_traces(*ranks, {&plan, events_, host, shift_});
    if (!file_.empty()) {
      text = to_chrome_trace(joint.plan, joint.events, joint.host, joint.ranks);
    }
  } else {
    text = to_chrome_trace(plan, events_, host);
  }
  if (!file_.empty()) write_text_file(file_, text);
  events_.clear();
}

}  // namespace tandem
