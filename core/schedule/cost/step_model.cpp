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
    const Buffer& buffer = plan.buffers[size_t(region.buffer)];
    return buffer.is_extended ? TANDEM_HOST : buffer.device;
  };
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = plan.tasks[i];
    TimedTask& timed = tasks_[i];
    for (const StreamId& id : task.streams) {
      timed.streams.push_back(id.device * stream_kinds + static_cast<int>(id.kind));
    }
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || rearranges(plan, *copy)) {
      const auto on = size_t(task.streams[0].device);
      timed.seconds = costs.seconds(net, plan, task) / (topology ? topology->speeds[on] : 1);
      continue;
    }
    for (const CopySegment& segment : copy->segments) {
      const int64_t bytes = plan.bytes(segment.source);
      if (bytes == 0) continue;
      timed.source = device(segment.source);
      timed.target = device(segment.target);
      timed.copies.push_back(bytes);
      timed.seconds += timing::copy_seconds(links_, timed.source, timed.target, bytes);
    }
  }
}

void StepModel::find_conflicts(const Plan& plan) {
  for_each_conflict(plan, [&](int earlier, int later, int micro_batches_back) {
    tasks_[size_t(later)].before.push_back({earlier, micro_batches_back});
  });
  for (TimedTask& task : tasks_) {
    const auto less = [](const Dependency& a, const Dependency& b) {
      return std::pair(a.micro_batches_back, a.task) < std::pair(b.micro_batches_back, b.task);
    };
    std::sort(task.before.begin(), task.before.end(), less);
    task.before.erase(std::unique(task.before.begin(), task.before.end()), task.before.end());
  }
}

void StepModel::remove_transfers() {
  for (TimedTask& task : tasks_) {
    if (!task.takes_links()) continue;
    task.copies.clear();
    task.seconds = 0;
  }
}

std::vector<std::vector<Dependency>> StepModel::followers() const {
  std::vector<std::vector<Dependency>> result(tasks_.size());
  for (size_t task = 0; task < result.size(); ++task) {
    for (const Dependency& wait : tasks_[task].before) {
      result[size_t(wait.task)].push_back({static_cast<int>(task), wait.micro_batches_back});
    }
  }
  return result;
}

std::vector<int> StepModel::given_order() const {
  std::vector<int> order(tasks_.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Issues micro-batches as the executor does, which is at most two micro-batches ahead of the
// devices. The mean is over an even number of micro-batches, because some plans alternate between
// two times.
StepTimes StepModel::in_order(const std::vector<int>& order) const {
  constexpr size_t many = 100000;
  const size_t count = tasks_.size();
  const size_t micro_batches = count < many ? 8 : 5, first = count < many ? 3 : 2;
  timing::Simulation simulation(links_);
  std::vector<timing::Operation> operations(count * micro_batches), ends(micro_batches);
  std::vector<timing::Operation*> last(size_t(streams_), nullptr);
  double issued_at = 0;
  const auto issue = [&](size_t micro_batch, size_t task) {
    const TimedTask& timed = tasks_[task];
    timing::Operation& operation = operations[micro_batch * count + task];
    operation.stream = static_cast<uint32_t>(timed.streams[0]);
    operation.source = timed.source;
    operation.target = timed.target;
    operation.copies = timed.copies;
    operation.seconds = timed.copies.empty() ? timed.seconds : 0;
    operation.begin = issued_at;
    for (const int stream : timed.streams) {
      timing::Operation*& before = last[size_t(stream)];
      if (before != nullptr) timing::Simulation::follow(operation, *before);
      before = &operation;
    }
    for (const Dependency& wait : timed.before) {
      if (size_t(wait.micro_batches_back) > micro_batch) continue;
      const size_t earlier =
          (micro_batch - size_t(wait.micro_batches_back)) * count + size_t(wait.task);
      timing::Simulation::follow(operation, operations[earlier]);
    }
    timing::Simulation::follow(ends[micro_batch], operation);
    simulation.issue(operation);
  };
  for (size_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    if (micro_batch >= 2) {
      simulation.run([&] { return ends[micro_batch - 2].is_done; });
      issued_at = ends[micro_batch - 2].end;
    }
    for (const int task : order) issue(micro_batch, size_t(task));
    simulation.issue(ends[micro_batch]);
  }
  simulation.run([&] { return ends.back().is_done; });
  StepTimes result;
  result.step_seconds =
      (ends.back().end - ends[first].end) / static_cast<double>(micro_batches - 1 - first);
  double from = std::numeric_limits<double>::infinity();
  for (size_t task = 0; task < count; ++task) {
    from = std::min(from, operations[first * count + task].begin);
  }
  for (size_t task = 0; task < count; ++task) {
    const timing::Operation& operation = operations[first * count + task];
    result.tasks.push_back({operation.begin - from, operation.end - from});
  }
  return result;
}

}  // namespace tandem
