#include "core/schedule/cost/step_model.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/schedule/plan/ordering.h"

namespace tandem {
namespace {

// As the backend `sim` is opened.
timing::Links simulated_links(int devices, const LinkSpec& link, const Topology* topology) {
  tandem_machine_options options{};
  options.device_count = devices;
  options.link_bandwidth = link.bandwidth;
  options.link_latency = link.latency;
  if (topology == nullptr) return {options, timing::default_link_bandwidth};
  const TopologyTable table(*topology);
  const tandem_topology raw = table.raw();
  options.topology = &raw;
  return {options, timing::default_link_bandwidth};
}

std::vector<TaskTime> times_of(std::span<const timing::Operation> operations) {
  double from = std::numeric_limits<double>::infinity();
  for (const timing::Operation& operation : operations) from = std::min(from, operation.begin);
  std::vector<TaskTime> times;
  times.reserve(operations.size());
  for (const timing::Operation& operation : operations) {
    times.push_back({operation.begin - from, operation.end - from});
  }
  return times;
}

}  // namespace

StepModel::StepModel(const Net& net, const Plan& plan, const CostTable& costs, const LinkSpec& link,
                     const Topology* topology)
    : tasks_(plan.tasks.size()),
      streams_(plan.devices * stream_kinds),
      links_(simulated_links(plan.devices, link, topology)) {
  estimate_tasks(net, plan, costs, topology);
  find_conflicts(plan);
}

void StepModel::estimate_tasks(const Net& net, const Plan& plan, const CostTable& costs,
                               const Topology* topology) {
  const auto device = [&](const Region& region) {
    const Buffer& buffer = plan.buffer(region.buffer);
    return buffer.is_extended ? TANDEM_HOST : buffer.device;
  };
  reserve_lists(plan);
  LayerWorks layers(net);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = plan.tasks[i];
    TimedTask& timed = tasks_[i];
    const size_t streams = task_streams_.size(), copies = task_copies_.size();
    for (const StreamId& id : task.streams) {
      task_streams_.push_back(id.device * stream_kinds + static_cast<int>(id.kind));
    }
    timed.streams = std::span(task_streams_).subspan(streams);
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || rearranges(plan, *copy)) {
      const auto on = size_t(task.streams[0].device);
      timed.seconds = costs.seconds(layers, plan, task) / (topology ? topology->speeds[on] : 1);
      continue;
    }
    for (const CopySegment& segment : copy->segments) {
      const int64_t bytes = plan.bytes(segment.source);
      if (bytes == 0) continue;
      timed.source = device(segment.source);
      timed.target = device(segment.target);
      task_copies_.push_back(bytes);
      timed.seconds += timing::copy_seconds(links_, timed.source, timed.target, bytes);
    }
    timed.copies = std::span(task_copies_).subspan(copies);
  }
}

// So that the tasks' parts of the lists stay where they are.
void StepModel::reserve_lists(const Plan& plan) {
  size_t streams = 0, copies = 0;
  for (const Task& task : plan.tasks) {
    streams += task.streams.size();
    if (const auto* copy = std::get_if<CopyWork>(&task.work)) copies += copy->segments.size();
  }
  task_streams_.reserve(streams);
  task_copies_.reserve(copies);
}

void StepModel::find_conflicts(const Plan& plan) {
  std::vector<DependencyLists::Entry> found;
  for_each_conflict(plan, [&](int earlier, int later, int micro_batches_back) {
    found.push_back({later, {earlier, micro_batches_back}});
  });
  before_ = DependencyLists(tasks_.size(), found);
  for (const DependencyLists::Entry& entry : found) {
    farthest_back_ = std::max(farthest_back_, size_t(entry.dependency.micro_batches_back));
  }
  before_.sort(&is_nearer);
  found.clear();
  for (size_t task = 0; task < tasks_.size(); ++task) {
    const std::span<const int> mine = tasks_[task].streams;
    for (const Dependency& wait : before_[task]) {
      const std::span<const int> other = tasks_[size_t(wait.task)].streams;
      if (std::find_first_of(mine.begin(), mine.end(), other.begin(), other.end()) != mine.end()) {
        continue;
      }
      found.push_back({static_cast<int>(task), wait});
    }
  }
  waits_ = DependencyLists(tasks_.size(), found);
}

DependencyLists StepModel::followers() const {
  std::vector<DependencyLists::Entry> result;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    for (const Dependency& wait : before_[task]) {
      result.push_back({wait.task, {static_cast<int>(task), wait.micro_batches_back}});
    }
  }
  return {tasks_.size(), result};
}

std::vector<int> StepModel::given_order() const {
  std::vector<int> order(tasks_.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Issues micro-batches as the executor does, which is at most two micro-batches ahead of the
// devices. The mean is over an even number of micro-batches, because some plans alternate between
// two times.
StepTimes StepModel::in_order(const std::vector<int>& order, bool has_transfers) const {
  constexpr size_t many = 100000, ahead = 2;
  const size_t count = tasks_.size();
  const size_t micro_batches = count < many ? 8 : 5, first = count < many ? 3 : 2;
  // Those of the micro-batches under way and of those that these may follow. The others are done,
  // and their memory is used again.
  const size_t kept = std::min(micro_batches, 1 + std::max(ahead, farthest_back_));
  std::vector<timing::Operation> operations(count * kept), ends(micro_batches);
  const auto operations_of = [&](size_t micro_batch) {
    return std::span(operations).subspan(micro_batch % kept * count, count);
  };
  timing::Simulation simulation(links_);
  std::vector<std::span<timing::Operation>> back(kept);  // by micro-batches from that being issued
  std::vector<timing::Operation*> last(size_t(streams_), nullptr);
  double issued_at = 0;
  const auto issue = [&](size_t micro_batch, size_t task) {
    const TimedTask& timed = tasks_[task];
    timing::Operation& operation = back[0][task] = {};
    operation.stream = static_cast<uint32_t>(timed.streams[0]);
    operation.source = timed.source;
    operation.target = timed.target;
    if (has_transfers || !timed.takes_links()) {
      operation.copies = timed.copies;
      operation.seconds = timed.copies.empty() ? timed.seconds : 0;
    }
    operation.begin = issued_at;
    for (const int stream : timed.streams) {
      timing::Operation*& before = last[size_t(stream)];
      if (before != nullptr) simulation.follow(operation, *before);
      before = &operation;
    }
    for (const Dependency& wait : waits_[task]) {
      const auto distance = size_t(wait.micro_batches_back);
      if (distance <= micro_batch) {
        simulation.follow(operation, back[distance][size_t(wait.task)]);
      }
    }
    simulation.issue(operation);
  };
  StepTimes result;
  for (size_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    if (micro_batch >= ahead) {
      simulation.run([&] { return ends[micro_batch - ahead].is_done; });
      issued_at = ends[micro_batch - ahead].end;
    }
    if (micro_batch == first + kept) result.tasks = times_of(operations_of(first));
    for (size_t i = 0; i < kept; ++i) back[i] = operations_of(micro_batch + kept - i);
    for (const int task : order) issue(micro_batch, size_t(task));
    for (timing::Operation* of_stream : last) {
      if (of_stream != nullptr) simulation.follow(ends[micro_batch], *of_stream);
    }
    simulation.issue(ends[micro_batch]);
  }
  simulation.run([&] { return ends.back().is_done; });
  if (result.tasks.empty()) result.tasks = times_of(operations_of(first));
  result.step_seconds =
      (ends.back().end - ends[first].end) / static_cast<double>(micro_batches - 1 - first);
  return result;
}

}  // namespace tandem
