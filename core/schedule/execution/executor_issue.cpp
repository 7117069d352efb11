// Lowers tasks, builds the flow graph and issues micro-batches.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/schedule/execution/executor_state.h"
#include "core/schedule/plan/ordering.h"
#include "plugins/random.h"

namespace tandem {
namespace {

// The number of micro-batches after which addresses repeat (a round).
int64_t round_of(const Plan& plan) {
  int64_t round = in_flight;
  for (const Buffer& buffer : plan.buffers) round = std::lcm<int64_t>(round, buffer.slots);
  return round;
}

// What a task's first stream must wait for: tasks of this micro-batch or the one before that are on
// other streams. Those further back are done before the micro-batch is issued.
std::vector<Dependency> event_waits(const Plan& plan, const Task& task) {
  std::vector<Dependency> result;
  for (const Dependency& wait : task.after) {
    const std::vector<StreamId>& streams = plan.task(wait.task).streams;
    const bool same = std::find(streams.begin(), streams.end(), task.streams[0]) != streams.end();
    if (!same && wait.micro_batches_back < in_flight) result.push_back(wait);
  }
  return result;
}

}  // namespace

Executor::State::State(const Plan& plan, const MemoryPlan& memory, const Net& net, Runtime& runtime,
                       const Kernels* kernels, const CostTable* costs, const UpdateRule& rule,
                       const ExecutorOptions& options)
    : plan(plan),
      runtime(runtime),
      options(options),
      lowering(plan, memory, net, runtime, kernels, costs, rule, options.ranks, options.links,
               options.communication, options.guards),
      events(runtime.machine(), plan),
      round(round_of(plan)),
      graphs(runtime, plan, events, options.graphs,
             std::lcm<int64_t>(round, plan.micro_batches_per_step)),
      works(plan.tasks.size()),
      externals(size_t(round), std::vector<void*>(plan.buffers.size())) {
  for (const Task& task : plan.tasks) {
    waits.push_back(event_waits(plan, task));
    has_external.push_back(touches_external(plan, task));
    has_first_tasks = has_first_tasks || task.when == When::micro_batch_0;
  }
  for (std::vector<Lowered>& of_task : works) of_task.resize(size_t(2 * round));
  lower_all();
  build_graph();
}

void Executor::State::build_graph() {
  const std::vector<std::vector<Dependency>> predecessors = stream_predecessors(plan);
  for (int task = 0; task < static_cast<int>(plan.tasks.size()); ++task) {
    const auto i = size_t(task);
    auto& node = nodes.emplace_back(graph, [this, task](const flow::continue_msg&) {
      issue_task(task);
      return flow::continue_msg();
    });
    std::set<int> before;
    for (const auto* list : {&predecessors[i], &plan.tasks[i].after}) {
      for (const Dependency& dependency : *list) {
        if (dependency.micro_batches_back == 0) before.insert(dependency.task);
      }
    }
    for (const int other : before) flow::make_edge(nodes[size_t(other)], node);
    if (before.empty()) flow::make_edge(begin, node);
  }
}

std::vector<std::byte*> Executor::State::arenas() const {
  std::vector<std::byte*> result;
  for (int device = -1; device < plan.devices; ++device) {
    result.push_back(runtime.transient(device));
  }
  return result;
}

void Executor::State::lower(size_t task, int64_t micro_batch) {
  Lowered& work = works[task][form_of(micro_batch)];
  work = lowering.lower(static_cast<int>(task), micro_batch, externals_of(micro_batch));
  work.first_failed = &first_failed;
}

void Executor::State::lower_all() {
  arenas_ = arenas();
  std::vector<bool> is_lowered(size_t(2 * round));
  const int64_t end = std::lcm<int64_t>(round, plan.micro_batches_per_step);
  for (int64_t micro_batch = 0; micro_batch < end; ++micro_batch) {
    if (is_lowered[form_of(micro_batch)]) continue;
    is_lowered[form_of(micro_batch)] = true;
    for (size_t task = 0; task < works.size(); ++task) lower(task, micro_batch);
  }
}

void Executor::State::take_externals(int64_t micro_batch, const std::vector<External>& given) {
  std::vector<void*>& addresses = externals[size_t(micro_batch % round)];
  for (const External& external : given) {
    addresses.at(size_t(external.buffer)) = external.address;
  }
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind != BufferKind::external) continue;
    const bool named = std::any_of(given.begin(), given.end(), [&](const External& e) {
      return e.buffer == static_cast<int>(i) && e.address != nullptr;
    });
    if (!named) {
      throw error("{}: no address for buffer '{}'", step_name(plan, micro_batch),
                  plan.buffers[i].name);
    }
  }
}

void Executor::State::issue(int64_t micro_batch, const std::vector<External>& given) {
  throw_failure();
  if (micro_batch < 0) throw error("micro-batch {}: they count from 0", micro_batch);
  if (micro_batch != last_issued + 1 || arenas_ != arenas()) {
    drain();
    issued.assign(in_flight, -1);
  }
  if (const int64_t before = issued[size_t(micro_batch % in_flight)]; before >= 0) {
    wait(before);
  }
  if (arenas_ != arenas()) {
    graphs.clear();
    lower_all();
  }
  take_externals(micro_batch, given);
  for (size_t task = 0; task < works.size(); ++task) {
    if (has_external[task]) lower(task, micro_batch);
  }
  issued[size_t(micro_batch % in_flight)] = micro_batch;
  last_issued = micro_batch;
  current.store(micro_batch, std::memory_order_release);
  takes_graph(micro_batch) ? issue_graph(micro_batch) : issue_live(micro_batch);
  static_cast<void>(bodies_done.load(std::memory_order_acquire));
  throw_failure();
}

void Executor::State::issue_live(int64_t micro_batch) {
  leave_graph(micro_batch);
  arena.execute([this] {
    begin.try_put(flow::continue_msg());
    graph.wait_for_all();
  });
}

// From here on the micro-batch runs task by task.
void Executor::State::leave_graph(int64_t micro_batch) {
  if (held(micro_batch - 1) && graphs.launched(micro_batch - 1)) graphs.leave(micro_batch - 1);
  graphs.note_live(micro_batch);
}

bool Executor::State::takes_graph(int64_t micro_batch) const {
  const bool is_traced =
      options.trace && micro_batch >= first_traced && micro_batch < end_of_traced;
  // A captured graph repeats what it has captured.
  const bool is_like_others = micro_batch > 0 || !has_first_tasks;
  return !is_traced && is_like_others && graphs.is_due(micro_batch);
}

void Executor::State::issue_graph(int64_t micro_batch) {
  for (const int task : graphs.split().before) issue_task(task);
  if (failed.load()) return;
  try {
    const int64_t failed_before = first_failed.load();
    const auto issue = [&](int task) { issue_on_streams(task, micro_batch, true); };
    if (graphs.capture(micro_batch, issue)) {
      graphs.launch(micro_batch, held(micro_batch - 1));
    } else {
      first_failed.store(failed_before);  // by the capture: no micro-batch has failed yet
      leave_graph(micro_batch);
      for (const int task : graphs.split().captured) issue_task(task);
    }
  } catch (const std::exception& failure) {
    return fail(fmt::format("{}: {}", step_name(plan, micro_batch), failure.what()));
  }
  for (const int task : graphs.split().after) issue_task(task);
}

// Runs on a thread of the graph, when everything that this task's waits name has been issued.
void Executor::State::issue_task(int index) {
  const int64_t micro_batch = current.load(std::memory_order_acquire);
  try {
    if (failed.load()) return;
    issue_on_streams(index, micro_batch, false);
  } catch (const std::exception& failure) {
    fail(fmt::format("{}: task '{}': {}", step_name(plan, micro_batch), plan.task(index).label,
                     failure.what()));
  }
  bodies_done.fetch_add(1, std::memory_order_release);
}

void Executor::State::issue_on_streams(int index, int64_t micro_batch, bool is_captured) {
  const Task& task = plan.task(index);
  const TaskEvents& marks = is_captured ? graphs.marks() : events;
  const Stream& stream = runtime.stream(task.streams[0]);
  for (size_t other = 1; other < task.streams.size(); ++other) {
    const Event& arrived = marks.arrived(index, other, micro_batch);
    runtime.stream(task.streams[other]).record(arrived);
    stream.wait(arrived);
  }
  for (const Dependency& wait : waits[size_t(index)]) {
    const int64_t awaited = micro_batch - wait.micro_batches_back;
    if (!is_captured) {
      if (awaited >= 0) stream.wait(done(wait.task, awaited));
    } else if (awaited == micro_batch && graphs.is_captured(wait.task)) {
      stream.wait(marks.done(wait.task, micro_batch));
    }
  }
  if (options.trace && !is_captured) stream.record(marks.start(index, micro_batch));
  Lowered& work = works[size_t(index)][form_of(micro_batch)];
  work.micro_batch = micro_batch;
  if (works_in(plan, task, micro_batch)) submit(index, stream, work);
  stream.record(marks.done(index, micro_batch));
  for (size_t other = 1; other < task.streams.size(); ++other) {
    runtime.stream(task.streams[other]).wait(marks.done(index, micro_batch));
  }
}

void Executor::State::submit(int task, const Stream& stream, Lowered& work) {
  const char* label = plan.task(task).label.c_str();
  const auto copy = [&] {
    for (const tandem_rows& rows : work.copies) stream.copy_rows(label, rows);
  };
  if (!work.copies_last) copy();
  if (!work.run) return;
  stream.submit({sizeof(tandem_work), work.kind, label,
                 varied_seconds(task, work.micro_batch, work.predicted_seconds),
                 &Lowered::trampoline, &work});
  if (work.copies_last) copy();
}

// The predicted time of the task in this micro-batch on a device of that speed.
double Executor::State::varied_seconds(int task, int64_t micro_batch, double seconds) const {
  const auto device = size_t(plan.task(task).streams[0].device);
  if (device < options.speeds.size()) seconds /= options.speeds[device];
  if (!options.varies() || seconds <= 0) return seconds;
  // The tasks' numbers come first, those of devices are counted from the other end.
  const auto factor = [&](double deviation, uint64_t number) {
    if (deviation <= 0) return 1.0;
    const uint32_t bits = tandem_random_block(options.variation_seed,
                                              static_cast<uint64_t>(micro_batch), 0, number, 0)
                              .value[0];
    const double exponential = -std::log(1.0 - tandem_uniform(bits));  // mean 1, deviation 1
    return std::max(0.0, 1 + deviation * (exponential - 1));
  };
  return seconds * factor(options.variation, static_cast<uint64_t>(task)) *
         factor(options.device_variation, ~static_cast<uint64_t>(device));
}

}  // namespace tandem
