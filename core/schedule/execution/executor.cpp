#include "core/schedule/execution/executor.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/schedule/execution/executor_state.h"
#include "core/schedule/plan/ordering.h"
#include "plugins/random.h"

namespace tandem {

namespace {

// Steps after which addresses come again: works are made ready once for each step of such a round.
int64_t round_of(const Plan& plan) {
  int64_t round = std::lcm<int64_t>(steps_in_flight, plan.micro_batches_per_step);
  for (const Buffer& buffer : plan.buffers) round = std::lcm<int64_t>(round, buffer.slots);
  return round;
}

// What a task's first stream must wait for: tasks of this step or the one before that no stream of
// theirs puts before it. What is further back is done before the step is issued.
std::vector<Dependency> event_waits(const Plan& plan, const Task& task) {
  std::vector<Dependency> result;
  for (const Dependency& wait : task.after) {
    const std::vector<StreamId>& streams = plan.tasks[static_cast<size_t>(wait.task)].streams;
    const bool same = std::find(streams.begin(), streams.end(), task.streams[0]) != streams.end();
    if (!same && wait.micro_batches_back < steps_in_flight) result.push_back(wait);
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
      lowering(plan, memory, net, runtime, kernels, costs, rule, options.communication),
      events(runtime.machine(), plan),
      round(round_of(plan)),
      graphs(make_graphs(kernels)),
      works(plan.tasks.size()),
      externals(static_cast<size_t>(round), std::vector<void*>(plan.buffers.size())) {
  for (const Task& task : plan.tasks) {
    waits.push_back(event_waits(plan, task));
    has_external.push_back(touches_external(plan, task));
  }
  for (std::vector<Lowered>& of_task : works) of_task.resize(static_cast<size_t>(round));
  lower_all();
  build_graph();
}

void Executor::State::build_graph() {
  const std::vector<std::vector<Dependency>> predecessors = stream_predecessors(plan);
  for (int task = 0; task < static_cast<int>(plan.tasks.size()); ++task) {
    const auto i = static_cast<size_t>(task);
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
    for (const int other : before) flow::make_edge(nodes[static_cast<size_t>(other)], node);
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

void Executor::State::lower(size_t task, int64_t step) {
  Lowered& work = works[task][static_cast<size_t>(step % round)];
  work = lowering.lower(static_cast<int>(task), step, externals_of(step));
  work.failed_step = &failed_step;
}

void Executor::State::lower_all() {
  arenas_ = arenas();
  for (size_t task = 0; task < works.size(); ++task) {
    for (int64_t step = 0; step < round; ++step) lower(task, step);
  }
}

void Executor::State::take_externals(int64_t step, const std::vector<External>& given) {
  std::vector<void*>& addresses = externals[static_cast<size_t>(step % round)];
  for (const External& external : given) {
    addresses.at(static_cast<size_t>(external.buffer)) = external.address;
  }
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind != BufferKind::external) continue;
    const bool named = std::any_of(given.begin(), given.end(), [&](const External& e) {
      return e.buffer == static_cast<int>(i) && e.address != nullptr;
    });
    if (!named) throw error("step {}: no address for buffer '{}'", step, plan.buffers[i].name);
  }
}

// What the task takes in this step on a device of that speed, by what the costs say.
double Executor::State::varied_seconds(int task, int64_t step, double seconds) const {
  const auto device = static_cast<size_t>(plan.tasks[static_cast<size_t>(task)].streams[0].device);
  if (device < options.speeds.size()) seconds /= options.speeds[device];
  if (options.variation <= 0 || seconds <= 0) return seconds;
  const uint32_t bits =
      tandem_random_block(options.variation_seed, static_cast<uint64_t>(step), 0, task, 0).value[0];
  const double exponential = -std::log(1.0 - tandem_uniform(bits));  // mean 1, deviation 1
  return seconds * std::max(0.0, 1 + options.variation * (exponential - 1));
}

void Executor::State::submit(int task, const Stream& stream, Lowered& work) {
  const char* label = plan.tasks[static_cast<size_t>(task)].label.c_str();
  for (const tandem_rows& rows : work.copies) stream.copy_rows(label, rows);
  if (!work.run) return;
  stream.submit({sizeof(tandem_work), TANDEM_WORK_COMPUTE, label,
                 varied_seconds(task, work.step, work.predicted_seconds), &Lowered::trampoline,
                 &work});
}

void Executor::State::issue_on_streams(int index, int64_t step, bool is_captured) {
  const Task& task = plan.tasks[static_cast<size_t>(index)];
  const TaskEvents& marks = is_captured ? graphs.marks() : events;
  const Stream& stream = runtime.stream(task.streams[0]);
  for (size_t other = 1; other < task.streams.size(); ++other) {
    const Event& arrived = marks.arrived(index, other, step);
    runtime.stream(task.streams[other]).record(arrived);
    stream.wait(arrived);
  }
  for (const Dependency& wait : waits[static_cast<size_t>(index)]) {
    if (!is_captured) {
      if (wait.micro_batches_back <= step)
        stream.wait(done(wait.task, step - wait.micro_batches_back));
    } else if (wait.micro_batches_back == 0 && graphs.is_captured(wait.task)) {
      stream.wait(marks.done(wait.task, step));
    }
  }
  if (options.trace && !is_captured) stream.record(marks.start(index, step));
  Lowered& work = works[static_cast<size_t>(index)][static_cast<size_t>(step % round)];
  work.step = step;
  if (works_in(plan, task, step)) submit(index, stream, work);
  stream.record(marks.done(index, step));
  for (size_t other = 1; other < task.streams.size(); ++other) {
    runtime.stream(task.streams[other]).wait(marks.done(index, step));
  }
}

// Runs on a thread of the graph, when everything that this task's waits name has been issued.
void Executor::State::issue_task(int index) {
  const int64_t step = current.load(std::memory_order_acquire);
  try {
    if (failed.load()) return;
    issue_on_streams(index, step, false);
  } catch (const std::exception& failure) {
    fail(fmt::format("step {}: task '{}': {}", step, plan.tasks[static_cast<size_t>(index)].label,
                     failure.what()));
  }
  bodies_done.fetch_add(1, std::memory_order_release);
}

void Executor::State::issue_live(int64_t step) {
  leave_graph(step);
  graphs.note_live(step);
  arena.execute([this] {
    begin.try_put(flow::continue_msg());
    graph.wait_for_all();
  });
}

void Executor::State::issue(int64_t step, const std::vector<External>& given) {
  throw_failure();
  if (step < 0) throw error("step {}: steps count from 0", step);
  if (step != last_step + 1 || arenas_ != arenas()) {
    drain();
    steps.assign(steps_in_flight, -1);
  }
  if (const int64_t before = steps[static_cast<size_t>(step % steps_in_flight)]; before >= 0) {
    wait(before);
  }
  if (arenas_ != arenas()) {
    graphs.clear();
    lower_all();
  }
  take_externals(step, given);
  for (size_t task = 0; task < works.size(); ++task) {
    if (has_external[task]) lower(task, step);
  }
  steps[static_cast<size_t>(step % steps_in_flight)] = step;
  last_step = step;
  current.store(step, std::memory_order_release);
  takes_graph(step) ? issue_graph(step) : issue_live(step);
  static_cast<void>(bodies_done.load(std::memory_order_acquire));
  throw_failure();
}

Executor::Executor(const Plan& plan, const MemoryPlan& memory, const Net& net, Runtime& runtime,
                   const Kernels* kernels, const CostTable* costs, const UpdateRule& rule,
                   const ExecutorOptions& options)
    : state_(std::make_unique<State>(plan, memory, net, runtime, kernels, costs, rule, options)) {}

Executor::~Executor() {
  // Once the watchdog has spoken nothing is worth waiting for much longer.
  const double patience = state_->failed.load() ? 1.0 : state_->options.watchdog_seconds;
  if (state_->settle(patience)) return;
  state_->runtime.abandon();
  static_cast<void>(state_.release());
}

void Executor::issue(int64_t step, const std::vector<External>& externals) {
  state_->issue(step, externals);
}
void Executor::wait(int64_t step) {
  state_->wait(step);
}
void Executor::drain() {
  state_->drain();
}
void Executor::wait_task(int64_t step, int task) {
  state_->wait_task(step, task);
}

std::vector<TraceEvent> Executor::trace(int64_t step) const {
  if (!state_->held(step)) {
    throw error("step {} has no trace: only the last two issued steps have", step);
  }
  if (state_->graphs.launched(step)) {
    throw error("step {} has no trace: it ran as one graph, whose tasks have no times", step);
  }
  std::vector<TraceEvent> result;
  for (int task = 0; task < static_cast<int>(state_->plan.tasks.size()); ++task) {
    const double end = state_->events.done(task, step).time();
    const double start = state_->options.trace ? state_->events.start(task, step).time() : end;
    result.push_back({task, step, start, end});
  }
  return result;
}

double Executor::end_time(int64_t step) const {
  if (!state_->held(step)) {
    throw error("step {} has no time: only the last two issued steps have", step);
  }
  double end = 0;
  for (const Event* event : state_->ends_of(step)) end = std::max(end, event->time());
  return end;
}

void Executor::trace_only(int64_t first, int64_t end) {
  state_->first_traced = first;
  state_->end_of_traced = end;
}

bool Executor::has_graphs() const {
  return state_->graphs.possible();
}

bool Executor::ran_as_graph(int64_t step) const {
  return state_->held(step) && state_->graphs.launched(step);
}

const std::string& Executor::graphs_given_up() const {
  return state_->graphs.given_up();
}

std::byte* Executor::address(const Region& region, int64_t step) const {
  return state_->lowering.address(region, step, state_->externals_of(step));
}

}  // namespace tandem
