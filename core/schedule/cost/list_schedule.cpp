#include "core/schedule/cost/list_schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace tandem {
namespace {

// By task: the seconds from its begin to the end of a few micro-batches, on the longest chain of
// tasks that wait for it or, except copies, follow it on its stream. The order of copies is what
// the search is for; `copies` is how much longer than alone these take.
std::vector<double> needs(const StepModel& model, const DependencyLists& followers,
                          const std::vector<int>& order, double copies) {
  constexpr size_t micro_batches = 4;
  std::vector<int> last(size_t(model.streams()), -1), first(last);
  std::vector<DependencyLists::Entry> entries;
  for (const int task : order) {
    if (model.tasks()[size_t(task)].takes_links()) continue;
    for (const int stream : model.tasks()[size_t(task)].streams) {
      int& before = last[size_t(stream)];
      if (before < 0) {
        first[size_t(stream)] = task;
      } else {
        entries.push_back({before, {task, 0}});
      }
      before = task;
    }
  }
  for (size_t stream = 0; stream < last.size(); ++stream) {
    if (last[stream] >= 0) entries.push_back({last[stream], {first[stream], 1}});
  }
  const DependencyLists on_streams(model.tasks().size(), entries);
  const size_t count = model.tasks().size();
  std::vector<double> tails(count * micro_batches, 0);
  for (size_t micro_batch = micro_batches; micro_batch-- > 0;) {
    for (auto task = order.rbegin(); task != order.rend(); ++task) {
      double most = 0;
      for (const auto& list : {followers[size_t(*task)], on_streams[size_t(*task)]}) {
        for (const Dependency& follower : list) {
          const size_t at = micro_batch + size_t(follower.micro_batches_back);
          if (at < micro_batches) most = std::max(most, tails[at * count + size_t(follower.task)]);
        }
      }
      const StepModel::TimedTask& timed = model.tasks()[size_t(*task)];
      tails[micro_batch * count + size_t(*task)] =
          most + timed.seconds * (timed.takes_links() ? copies : 1);
    }
  }
  tails.resize(count);
  return tails;
}

// Simulates some micro-batches in which a stream that is free takes, of the tasks of its
// micro-batch that can begin, the one with the greatest need.
class Dispatching {
 public:
  Dispatching(const StepModel& model, const DependencyLists& before,
              const DependencyLists& followers, const std::vector<double>& needs, double patience)
      : model_(model),
        followers_(followers),
        needs_(needs),
        patience_(patience),
        count_(model.tasks().size()),
        links_(model.links()),
        missing_(count_ * micro_batches, 0),
        streams_(size_t(model.streams())) {
    for (size_t task = 0; task < count_; ++task) {
      for (const int stream : model_.tasks()[task].streams) ++streams_[size_t(stream)].tasks;
      for (size_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
        for (const Dependency& wait : before[task]) {
          missing_[micro_batch * count_ + task] +=
              size_t(wait.micro_batches_back) <= micro_batch ? 1 : 0;
        }
      }
    }
    for (Stream& stream : streams_) stream.left = stream.tasks;
    for (size_t node = 0; node < missing_.size(); ++node) {
      if (missing_[node] == 0) make_ready(node);
    }
  }

  // The order in which the tasks of a micro-batch under way begin.
  const std::vector<int>& run() {
    ends_.assign(count_, 0);
    begin_what_can();
    while (!events_.empty()) {
      now_ = events_.top().first;
      while (!events_.empty() && events_.top().first <= now_) {
        const size_t node = events_.top().second;
        events_.pop();
        if (node != waking) finish(node);
      }
      begin_what_can();
    }
    return order_;
  }
  // By task: when it was done.
  [[nodiscard]] const std::vector<double>& ends() const { return ends_; }

 private:
  static constexpr size_t micro_batches = 4, taken = 2, waking = ~size_t{0};
  using Event = std::pair<double, size_t>;  // time, the node that is then done
  // A task of a micro-batch that waits for its streams alone. Hundreds are looked at after each
  // event, so this is small, and has all that shows of most that they go on waiting.
  struct Ready {
    int first_stream;
    uint16_t micro_batch;
    bool takes_links;
    uint32_t task, node;
    double need, patience;  // seconds
    bool operator<(const Ready& other) const {
      return std::tuple(micro_batch, -need, node) <
             std::tuple(other.micro_batch, -other.need, other.node);
    }
  };
  struct Stream {
    double until = 0;         // the end of the task that it does
    size_t micro_batch = 0;   // the one it does, or will do next
    int tasks = 0, left = 0;  // of a micro-batch; not yet begun of its micro-batch
    bool is_free = true, is_held = false;
  };

  void make_ready(size_t node) {
    const size_t index = node % count_;
    const StepModel::TimedTask& task = model_.tasks()[index];
    const Ready ready{.first_stream = task.streams[0],
                      .micro_batch = static_cast<uint16_t>(node / count_),
                      .takes_links = task.takes_links(),
                      .task = static_cast<uint32_t>(index),
                      .node = static_cast<uint32_t>(node),
                      .need = needs_[index],
                      .patience = patience_ * task.seconds};
    ready_.insert(std::upper_bound(ready_.begin(), ready_.end(), ready), ready);
  }
  [[nodiscard]] const StepModel::TimedTask& task_of(const Ready& ready) const {
    return model_.tasks()[ready.task];
  }
  // Its streams are free, and done with the micro-batches before.
  [[nodiscard]] bool has_streams(const Ready& ready) const {
    const std::span<const int> streams = task_of(ready).streams;
    return std::all_of(streams.begin(), streams.end(), [&](int index) {
      const Stream& stream = streams_[size_t(index)];
      return stream.is_free && !stream.is_held && stream.micro_batch == ready.micro_batch;
    });
  }
  // A copy whose other end will be free soon (within its patience) holds the end that is free now.
  // Otherwise two pairs of devices whose copies end at different times would never change partners.
  void hold_streams(const Ready& ready) {
    if (!ready.takes_links) return;
    const double patient_until = now_ + ready.patience;
    for (const int index : task_of(ready).streams) {
      const Stream& stream = streams_[size_t(index)];
      if (stream.is_held || stream.micro_batch != ready.micro_batch) return;
      if (!stream.is_free && stream.until > patient_until) return;
    }
    for (const int index : task_of(ready).streams) streams_[size_t(index)].is_held = true;
  }
  // Which neither begins nor holds streams now. Most tasks do, and this costs little to see.
  [[nodiscard]] bool waits_for_first_stream(const Ready& ready) const {
    const Stream& first = streams_[size_t(ready.first_stream)];
    if (first.micro_batch != ready.micro_batch || first.is_held) return true;
    return !first.is_free && (!ready.takes_links || first.until > now_ + ready.patience);
  }
  void begin_what_can() {
    for (Stream& stream : streams_) stream.is_held = false;
    size_t kept = 0;
    for (size_t i = 0; i < ready_.size(); ++i) {
      const Ready& ready = ready_[i];
      if (!waits_for_first_stream(ready)) {
        if (!has_streams(ready)) {
          hold_streams(ready);
        } else if (has_link(ready.node)) {
          begin(ready.node);
          continue;
        }
      }
      if (kept != i) ready_[kept] = ready;
      ++kept;
    }
    ready_.resize(kept);
  }
  // A copy that would only queue for a link leaves its streams to other tasks meanwhile.
  bool has_link(size_t node) {
    const StepModel::TimedTask& task = model_.tasks()[node % count_];
    if (!task.takes_links()) return true;
    const double from = links_.free_for(task.source, task.target, task.copies.front());
    if (from <= now_ + 1e-9) return true;
    events_.emplace(from, waking);
    return false;
  }
  void begin(size_t node) {
    const StepModel::TimedTask& task = model_.tasks()[node % count_];
    if (node / count_ == taken) order_.push_back(static_cast<int>(node % count_));
    double end = now_ + task.seconds;
    if (task.takes_links()) {
      end = now_;
      for (const int64_t bytes : task.copies) {
        end = links_.reserve(task.source, task.target, bytes, end);
      }
    }
    for (const int index : task.streams) {
      Stream& stream = streams_[size_t(index)];
      stream.is_free = false;
      stream.until = end;
      if (--stream.left > 0) continue;
      stream.left = stream.tasks;
      ++stream.micro_batch;
    }
    if (node / count_ == taken) ends_[node % count_] = end;
    events_.emplace(end, node);
  }
  void finish(size_t node) {
    for (const int stream : model_.tasks()[node % count_].streams) {
      streams_[size_t(stream)].is_free = true;
    }
    for (const Dependency& follower : followers_[node % count_]) {
      const size_t at = node / count_ + size_t(follower.micro_batches_back);
      if (at >= micro_batches) continue;
      const size_t next = at * count_ + size_t(follower.task);
      if (--missing_[next] == 0) make_ready(next);
    }
  }

  const StepModel& model_;
  const DependencyLists& followers_;
  const std::vector<double>& needs_;
  double patience_;
  size_t count_;
  timing::Links links_;
  std::vector<int> missing_;  // by node: a task of a micro-batch
  std::vector<Stream> streams_;
  std::vector<Ready> ready_;  // the most urgent first
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0;
  std::vector<int> order_;
  std::vector<double> ends_;
};

}  // namespace

OrderedStep list_schedule(const StepModel& model, int attempts, double bound, double wanted) {
  const DependencyLists followers = model.followers();
  const DependencyLists& before = model.before();
  OrderedStep best{model.given_order(), {}};
  best.times = model.in_order(best.order);
  const std::vector<int> given = best.order;
  const auto attempt = [&](const std::vector<double>& need, double patience) {
    Dispatching forward(model, before, followers, need, patience);
    const std::vector<int>& order = forward.run();
    StepTimes times = model.in_order(order);
    if (times.step_seconds < best.times.step_seconds) best = {order, std::move(times)};
    return forward.ends();
  };
  constexpr double patiences[] = {0.5, 1, 2}, longer[] = {2, 1, 0, 0.5, 3, 5};
  constexpr double near = 1.005;  // of the bound: the rest is not worth a search
  constexpr double far = 1.06;    // more than other attempts gain
  constexpr int refined = 2;      // times: needs found again, from a schedule made backwards
  for (const double copies : longer) {
    for (const double patience : patiences) {
      if (attempts <= 0 || best.times.step_seconds < near * bound) return best;
      std::vector<double> ends = attempt(needs(model, followers, given, copies), patience);
      --attempts;
      if (best.times.step_seconds > far * wanted) return best;
      for (int i = 0; i < refined && attempts > 0; ++i, --attempts) {
        Dispatching backward(model, followers, before, ends, patience);
        backward.run();
        ends = attempt(backward.ends(), patience);
      }
    }
  }
  return best;
}

void reorder(Plan& plan, const std::vector<int>& order) {
  std::vector<Task> tasks;
  for (const int task : order) tasks.push_back(std::move(plan.task(task)));
  plan.tasks = std::move(tasks);
}

}  // namespace tandem
