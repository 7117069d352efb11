#include "core/schedule/cost/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/overloaded.h"

namespace tandem {

namespace {

constexpr double unreached = -std::numeric_limits<double>::infinity();
constexpr size_t steps = 2;

// Work of one device between the end of a task and the end of the same task one step later.
struct Job {
  double head = 0, seconds = 0, tail = 0;  // before its begin; its own; after its end
};

// The shortest of all orders, which may interrupt jobs: of the jobs that can run, the one with the
// longest tail runs first.
double shortest(std::vector<Job> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
  using Waiting = std::pair<double, double>;  // tail, seconds left
  std::priority_queue<Waiting> waiting;
  double now = 0, end = 0;
  for (size_t next = 0; next < jobs.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, jobs[next].head);
    while (next < jobs.size() && jobs[next].head <= now) {
      waiting.emplace(jobs[next].tail, jobs[next].seconds);
      ++next;
    }
    const auto [tail, left] = waiting.top();
    waiting.pop();
    const double until = next < jobs.size() ? jobs[next].head : now + left;
    if (now + left <= until || until <= now) {
      now += left;
      end = std::max(end, now + tail);
    } else {
      waiting.emplace(tail, left - (until - now));
      now = until;
    }
  }
  return end;
}

class Chains {
 public:
  explicit Chains(const StepModel& model)
      : model_(model), count_(model.tasks().size()), followers_(model.followers()) {}

  // By device: the computations between the task and the same task of the next step.
  [[nodiscard]] std::map<int, std::vector<Job>> jobs_between(size_t task) const {
    const std::vector<double> heads = heads_from(task), tails = tails_to(count_ + task);
    std::map<int, std::vector<Job>> result;
    for (size_t node = 0; node < heads.size(); ++node) {
      const StepModel::TimedTask& timed = model_.tasks()[node % count_];
      if (node == task || heads[node] == unreached || tails[node] == unreached) continue;
      if (model_.kind_of(timed.streams[0]) != StreamKind::compute) continue;
      result[timed.streams[0] / stream_kinds].push_back({heads[node], timed.seconds, tails[node]});
    }
    return result;
  }

 private:
  // By node, which is a task of a step: the longest chain from the end of `from` to its begin.
  [[nodiscard]] std::vector<double> heads_from(size_t from) const {
    std::vector<double> heads(count_ * steps, unreached);
    heads[from] = -model_.tasks()[from].seconds;
    for (size_t node = 0; node < heads.size(); ++node) {
      if (heads[node] == unreached) continue;
      const double end = heads[node] + model_.tasks()[node % count_].seconds;
      for (const Dependency& follower : followers_[node % count_]) {
        const size_t at = node / count_ + size_t(follower.micro_batches_back);
        if (at >= steps) continue;
        double& head = heads[at * count_ + size_t(follower.task)];
        head = std::max(head, end);
      }
    }
    return heads;
  }
  // The longest chain from its end to the end of `to`.
  [[nodiscard]] std::vector<double> tails_to(size_t to) const {
    std::vector<double> tails(count_ * steps, unreached);
    tails[to] = 0;
    for (size_t node = tails.size(); node-- > 0;) {
      for (const Dependency& follower : followers_[node % count_]) {
        const size_t at = node / count_ + size_t(follower.micro_batches_back);
        if (at >= steps) continue;
        const size_t next = at * count_ + size_t(follower.task);
        if (tails[next] == unreached) continue;
        tails[node] = std::max(tails[node], tails[next] + model_.tasks()[next % count_].seconds);
      }
    }
    return tails;
  }

  const StepModel& model_;
  size_t count_;
  std::vector<std::vector<Dependency>> followers_;
};

}  // namespace

const CopyWork* transfer_of(const Task& task) {
  return std::visit(
      overloaded{
          [&](const CopyWork& copy) { return task.streams.size() > 1 ? &copy : nullptr; },
          [](const OneOf<LayerWork, AddWork, MergeWork, NormWork, UpdateWork, CheckWork,
                         ConvertWork, SendWork, ReceiveWork> auto&) -> const CopyWork* {
            return nullptr;
          },
      },
      task.work);
}

LinkLoads::LinkLoads(const Plan& plan, double bandwidth, const Topology* topology)
    : LinkLoads(bandwidth, topology) {
  for (const Task& task : plan.tasks) {
    const CopyWork* transfer = transfer_of(task);
    if (transfer == nullptr) continue;
    for (const CopySegment& segment : transfer->segments) {
      add(task.streams[1].device, task.streams[0].device,
          static_cast<double>(plan.bytes(segment.source)));
    }
  }
}

void LinkLoads::add(int source, int target, double bytes) {
  const double bandwidth = topology_ == nullptr ? bandwidth_ : topology_->bandwidth(source, target);
  sent_[source] += bytes / bandwidth;
  received_[target] += bytes / bandwidth;
  if (topology_ == nullptr) return;
  for (const uint32_t channel : topology_->path(source, target).channels) {
    channels_[channel] += bytes / topology_->channels[channel].bandwidth;
  }
}

std::pair<double, std::string> LinkLoads::busiest() const {
  std::pair<double, std::string> most{0, ""};
  for (const auto& [channel, seconds] : channels_) {
    if (seconds > most.first) most = {seconds, topology_->channels[channel].name};
  }
  for (const auto& [device, seconds] : sent_) {
    if (seconds > most.first) most = {seconds, fmt::format("what @{} sends", device)};
  }
  for (const auto& [device, seconds] : received_) {
    if (seconds > most.first) most = {seconds, fmt::format("what @{} receives", device)};
  }
  return most;
}

double LinkLoads::unevenness() const {
  double sum = 0;
  const auto add_squares = [&](const auto& loads) {
    for (const auto& [of, seconds] : loads) sum += seconds * seconds;
  };
  add_squares(sent_);
  add_squares(received_);
  add_squares(channels_);
  return sum;
}

StepBounds bounds_of(const Net& net, const Plan& plan, const CostTable& costs, double bandwidth,
                     const Topology* topology) {
  std::map<int, double> computes;
  for (const Task& task : plan.tasks) {
    if (!std::holds_alternative<LayerWork>(task.work)) continue;
    const int device = task.streams[0].device;
    const double speed = topology == nullptr ? 1 : topology->speeds[size_t(device)];
    computes[device] += costs.seconds(net, plan, task) / speed;
  }
  StepBounds bounds;
  for (const auto& [device, seconds] : computes) {
    if (seconds <= bounds.compute) continue;
    bounds.compute = seconds;
    bounds.device = device;
  }
  std::tie(bounds.link, bounds.link_name) = LinkLoads(plan, bandwidth, topology).busiest();
  return bounds;
}

ChainBound chain_bound(const StepModel& model, const Plan& plan) {
  const Chains chains(model);
  ChainBound bound;
  std::set<int> layers;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const auto* update = std::get_if<UpdateWork>(&plan.tasks[i].work);
    if (update == nullptr || update->arrays.empty()) continue;
    if (!layers.insert(update->arrays.front().weight).second) continue;
    for (const auto& [device, jobs] : chains.jobs_between(i)) {
      const double seconds = shortest(jobs);
      if (seconds <= bound.seconds) continue;
      bound = {seconds, device, 0, plan.tasks[i].label};
      for (const Job& job : jobs) bound.computes += job.seconds;
    }
  }
  return bound;
}

}  // namespace tandem
