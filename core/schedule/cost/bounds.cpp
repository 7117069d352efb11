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

// The longest chains between a task of a step and the same task of the next one. A node is a task
// of a step; all nodes between the two have numbers between theirs.
class Chains {
 public:
  explicit Chains(const StepModel& model) : count_(model.tasks().size()), nodes_(count_ * steps) {
    const DependencyLists followers = model.followers();
    begins_.reserve(count_ + 1);
    for (size_t task = 0; task < count_; ++task) {
      const StepModel::TimedTask& timed = model.tasks()[task];
      const bool computes = model.kind_of(timed.streams[0]) == StreamKind::compute;
      tasks_.push_back({timed.seconds, computes ? timed.streams[0] / stream_kinds : -1});
      begins_.push_back(distances_.size());
      for (const Dependency& follower : followers[task]) {
        distances_.push_back(size_t(follower.micro_batches_back) * count_ + size_t(follower.task) -
                             task);
      }
    }
    begins_.push_back(distances_.size());
  }

  void go_to(size_t task) {
    first_ = task;
    last_ = task + count_;
    find_heads();
    find_tails();
  }
  // By device: what the computations take in the order in which they are listed, so that no best
  // order takes longer; 0: there are none.
  [[nodiscard]] std::vector<double> listed() const {
    std::vector<double> now, end;
    for_each_job([&](size_t device, const Job& job) {
      if (device >= now.size()) {
        now.resize(device + 1, 0);
        end.resize(device + 1, 0);
      }
      now[device] = std::max(now[device], job.head) + job.seconds;
      end[device] = std::max(end[device], now[device] + job.tail);
    });
    return end;
  }
  [[nodiscard]] std::vector<Job> jobs_of(size_t device) const {
    std::vector<Job> jobs;
    for_each_job([&](size_t of, const Job& job) {
      if (of == device) jobs.push_back(job);
    });
    return jobs;
  }

 private:
  struct TaskWork {
    double seconds = 0;
    int device = -1;  // that computes; -1: none
  };
  struct Node {
    double head = unreached, tail = unreached;
  };

  // Nodes between the two tasks, as (node, task).
  template <class Visit>
  void for_each_node(const Visit& visit) const {
    for (size_t node = first_; node < count_; ++node) visit(node, node);
    for (size_t node = count_; node < last_; ++node) visit(node, node - count_);
  }
  template <class Visit>
  void for_each_job(const Visit& visit) const {
    const auto visit_job = [&](size_t node, size_t task) {
      const auto& [head, tail] = nodes_[node];
      if (head == unreached || tail == unreached || tasks_[task].device < 0) return;
      visit(size_t(tasks_[task].device), Job{head, tasks_[task].seconds, tail});
    };
    for_each_node([&](size_t node, size_t task) {
      if (node != first_) visit_job(node, task);
    });
    visit_job(last_, first_);
  }
  // The nodes that wait for this one.
  template <class Visit>
  void for_each_follower(size_t node, size_t task, const Visit& visit) const {
    for (size_t i = begins_[task]; i < begins_[task + 1]; ++i) {
      if (node + distances_[i] <= last_) visit(node + distances_[i]);
    }
  }
  // By node: the longest chain from the end of the task to its begin.
  void find_heads() {
    std::fill(nodes_.begin() + std::ptrdiff_t(first_), nodes_.begin() + std::ptrdiff_t(last_) + 1,
              Node{});
    nodes_[first_].head = -tasks_[first_].seconds;
    for_each_node([&](size_t node, size_t task) {
      if (nodes_[node].head == unreached) return;
      const double end = nodes_[node].head + tasks_[task].seconds;
      for_each_follower(node, task,
                        [&](size_t next) { nodes_[next].head = std::max(nodes_[next].head, end); });
    });
  }
  // From its end to the end of the same task of the next step.
  void find_tails() {
    nodes_[last_].tail = 0;
    for (size_t node = last_; node-- > first_;) {
      if (nodes_[node].head == unreached) continue;
      double& tail = nodes_[node].tail;
      for_each_follower(node, node < count_ ? node : node - count_, [&](size_t next) {
        if (nodes_[next].tail == unreached) return;
        const size_t task = next < count_ ? next : next - count_;
        tail = std::max(tail, nodes_[next].tail + tasks_[task].seconds);
      });
    }
  }

  size_t count_;
  std::vector<TaskWork> tasks_;
  std::vector<size_t> begins_, distances_;  // by task: from a node to those that wait for it
  size_t first_ = 0, last_ = 0;
  std::vector<Node> nodes_;
};

// One update of each layer, the first; of very many layers, of some.
std::vector<size_t> updates_of_layers(const Plan& plan) {
  constexpr size_t most = 512;
  std::vector<size_t> all;
  std::set<int> layers;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const auto* update = std::get_if<UpdateWork>(&plan.tasks[i].work);
    if (update == nullptr || update->arrays.empty()) continue;
    if (layers.insert(update->arrays.front().weight).second) all.push_back(i);
  }
  const size_t stride = (all.size() + most - 1) / most;
  std::vector<size_t> result;
  for (size_t i = 0; i < all.size(); i += stride) result.push_back(all[i]);
  return result;
}

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
  LayerWorks layers(net);
  for (const Task& task : plan.tasks) {
    if (!std::holds_alternative<LayerWork>(task.work)) continue;
    const int device = task.streams[0].device;
    const double speed = topology == nullptr ? 1 : topology->speeds[size_t(device)];
    computes[device] += costs.seconds(layers, plan, task) / speed;
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
  constexpr double rounding = 1e-9;  // of sums: what is shorter by more is shorter
  Chains chains(model);
  ChainBound bound;
  for (const size_t i : updates_of_layers(plan)) {
    chains.go_to(i);
    const std::vector<double> listed = chains.listed();
    for (size_t device = 0; device < listed.size(); ++device) {
      if (listed[device] <= (1 - rounding) * bound.seconds) continue;
      const std::vector<Job> jobs = chains.jobs_of(device);
      const double seconds = shortest(jobs);
      if (seconds <= bound.seconds) continue;
      bound = {seconds, static_cast<int>(device), 0, plan.tasks[i].label};
      for (const Job& job : jobs) bound.computes += job.seconds;
    }
  }
  return bound;
}

}  // namespace tandem
