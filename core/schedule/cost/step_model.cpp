#include "core/schedule/cost/step_model.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "core/schedule/plan/ordering.h"

namespace tandem {

namespace {

// As the backend `sim` takes them to be.
constexpr double memory_bandwidth = 60e9, host_bandwidth = 12e9;

// Several steps of a StepModel with a fixed order on each stream.
class Playing {
 public:
  Playing(const StepModel& model, const std::vector<int>& order, int steps)
      : model_(model), count_(model.tasks().size()), steps_(size_t(steps)), links_(model.links()) {
    followers_.resize(count_);
    waits_.assign(count_, std::vector<int>(steps_, 0));
    connect(order);
    const size_t nodes = count_ * steps_;
    missing_.resize(nodes);
    ready_.assign(nodes, 0);
    next_copy_.assign(nodes, 0);
    times_.resize(nodes);
    unfinished_.assign(steps_, count_);
    step_end_.assign(steps_, 0);
  }

  const std::vector<TaskTime>& play() {
    for (size_t step = 0; step < steps_; ++step) {
      for (size_t task = 0; task < count_; ++task) {
        // The host issues a step when that two before it is done.
        missing_[step * count_ + task] = waits_[task][step] + (step >= 2 ? 1 : 0);
      }
    }
    for (size_t node = 0; node < missing_.size(); ++node) {
      if (missing_[node] == 0) runnable_.push_back(node);
    }
    for (;;) {
      while (!runnable_.empty()) {
        const size_t node = runnable_.back();
        runnable_.pop_back();
        begin(node);
      }
      if (copies_.empty()) break;
      const size_t node = std::get<2>(copies_.top());
      copies_.pop();
      serve(node);
    }
    return times_;
  }

  [[nodiscard]] double end_of(size_t step) const { return step_end_[step]; }

 private:
  using ReadyCopy = std::tuple<double, int, size_t>;  // ready, stream, node

  void follow(int earlier, int later, int steps) {
    followers_[size_t(earlier)].push_back({later, steps});
    for (size_t step = size_t(steps); step < steps_; ++step) ++waits_[size_t(later)][step];
  }
  void connect(const std::vector<int>& order) {
    std::vector<int> last(size_t(model_.streams()), -1), first(last);
    for (const int task : order) {
      for (const int stream : model_.tasks()[size_t(task)].streams) {
        if (last[size_t(stream)] < 0) {
          first[size_t(stream)] = task;
        } else {
          follow(last[size_t(stream)], task, 0);
        }
        last[size_t(stream)] = task;
      }
    }
    for (size_t stream = 0; stream < last.size(); ++stream) {
      if (last[stream] >= 0) follow(last[stream], first[stream], 1);
    }
    for (size_t task = 0; task < count_; ++task) {
      for (const Dependency& wait : model_.tasks()[task].before) {
        follow(wait.task, static_cast<int>(task), wait.micro_batches_back);
      }
    }
  }

  void begin(size_t node) {
    const StepModel::PricedTask& task = model_.tasks()[node % count_];
    times_[node].start = ready_[node];
    if (task.copies.empty()) {
      finish(node, ready_[node] + task.seconds);
    } else {
      copies_.emplace(ready_[node], task.streams[0], node);
    }
  }
  void serve(size_t node) {
    const StepModel::PricedTask& task = model_.tasks()[node % count_];
    const int64_t bytes = task.copies[next_copy_[node]++];
    double& now = ready_[node];
    if (task.takes_links()) {
      now = links_.reserve(task.source, task.target, bytes, now);
    } else if (task.source == task.target) {
      now += 2 * static_cast<double>(bytes) / memory_bandwidth;
    } else {
      double& free = host_free_[{task.source, task.target}];
      now = free = std::max(now, free) + static_cast<double>(bytes) / host_bandwidth;
    }
    if (next_copy_[node] < task.copies.size()) {
      copies_.emplace(now, task.streams[0], node);
    } else {
      finish(node, now);
    }
  }
  void finish(size_t node, double end) {
    times_[node].end = end;
    const size_t step = node / count_;
    for (const Dependency& follower : followers_[node % count_]) {
      const size_t at = step + size_t(follower.micro_batches_back);
      if (at < steps_) arrive(at * count_ + size_t(follower.task), end);
    }
    step_end_[step] = std::max(step_end_[step], end);
    if (--unfinished_[step] > 0 || step + 2 >= steps_) return;
    for (size_t task = 0; task < count_; ++task) {
      arrive((step + 2) * count_ + task, step_end_[step]);
    }
  }
  void arrive(size_t node, double time) {
    ready_[node] = std::max(ready_[node], time);
    if (--missing_[node] == 0) runnable_.push_back(node);
  }

  const StepModel& model_;
  size_t count_, steps_;
  LinkClock links_;
  std::map<std::pair<int, int>, double> host_free_;
  std::vector<std::vector<Dependency>> followers_;  // of each task, so many steps later
  std::vector<std::vector<int>> waits_;             // of each task in each step: how many
  std::vector<int> missing_;                        // by node: a task of a step
  std::vector<double> ready_;
  std::vector<size_t> next_copy_;
  std::vector<TaskTime> times_;
  std::vector<size_t> unfinished_;
  std::vector<double> step_end_;
  std::vector<size_t> runnable_;
  std::priority_queue<ReadyCopy, std::vector<ReadyCopy>, std::greater<>> copies_;
};

}  // namespace

StepModel::StepModel(const Net& net, const Plan& plan, const CostTable& costs, const LinkSpec& link,
                     const Topology* topology)
    : tasks_(plan.tasks.size()),
      streams_(plan.devices * stream_kinds),
      link_(link),
      topology_(topology) {
  price(net, plan, costs);
  find_conflicts(plan);
}

void StepModel::price(const Net& net, const Plan& plan, const CostTable& costs) {
  const LinkClock links(link_, topology_);
  const auto device = [&](const Region& region) {
    const Buffer& buffer = plan.buffers[size_t(region.buffer)];
    return buffer.is_extended ? TANDEM_HOST : buffer.device;
  };
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = plan.tasks[i];
    PricedTask& priced = tasks_[i];
    for (const StreamId& id : task.streams) {
      priced.streams.push_back(id.device * stream_kinds + static_cast<int>(id.kind));
    }
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || rearranges(plan, *copy)) {
      const auto on = size_t(task.streams[0].device);
      priced.seconds = costs.seconds(net, plan, task) / (topology_ ? topology_->speeds[on] : 1);
      continue;
    }
    for (const CopySegment& segment : copy->segments) {
      const int64_t bytes = plan.bytes(segment.source);
      if (bytes == 0) continue;
      priced.source = device(segment.source);
      priced.target = device(segment.target);
      priced.copies.push_back(bytes);
      const auto count = static_cast<double>(bytes);
      priced.seconds += priced.takes_links()
                            ? links.seconds_alone(priced.source, priced.target, bytes)
                        : priced.source == priced.target ? 2 * count / memory_bandwidth
                                                         : count / host_bandwidth;
    }
  }
}

void StepModel::find_conflicts(const Plan& plan) {
  std::vector<std::vector<Access>> by_buffer(plan.buffers.size());
  for (const Access& access : accesses(plan)) by_buffer[size_t(access.buffer)].push_back(access);
  for (size_t buffer = 0; buffer < by_buffer.size(); ++buffer) {
    const std::vector<Access>& list = by_buffer[buffer];
    for (size_t i = 0; i < list.size(); ++i) {
      for (size_t j = i + 1; j < list.size(); ++j) {
        const Access &a = list[i], &b = list[j];
        if ((!a.writes && !b.writes) || a.task == b.task) continue;
        if (!a.bytes.overlaps(b.bytes)) continue;
        tasks_[size_t(b.task)].before.push_back({a.task, 0});
        tasks_[size_t(a.task)].before.push_back({b.task, plan.buffers[buffer].slots});
      }
    }
  }
  for (PricedTask& task : tasks_) {
    const auto less = [](const Dependency& a, const Dependency& b) {
      return std::pair(a.micro_batches_back, a.task) < std::pair(b.micro_batches_back, b.task);
    };
    std::sort(task.before.begin(), task.before.end(), less);
    task.before.erase(std::unique(task.before.begin(), task.before.end()), task.before.end());
  }
}

std::vector<int> StepModel::given_order() const {
  std::vector<int> order(tasks_.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

StepTimes StepModel::in_order(const std::vector<int>& order) const {
  constexpr size_t steps = 7, first = 3;
  Playing playing(*this, order, steps);
  const std::vector<TaskTime>& times = playing.play();
  StepTimes result;
  result.step_seconds =
      (playing.end_of(steps - 1) - playing.end_of(first)) / static_cast<double>(steps - 1 - first);
  const auto begin = times.begin() + static_cast<int64_t>(first * tasks_.size());
  result.tasks.assign(begin, begin + static_cast<int64_t>(tasks_.size()));
  double from = result.tasks.empty() ? 0 : result.tasks.front().start;
  for (const TaskTime& time : result.tasks) from = std::min(from, time.start);
  for (TaskTime& time : result.tasks) time = {time.start - from, time.end - from};
  return result;
}

}  // namespace tandem
