// Waiting, traces, and the public functions of Executor; executor_issue.cpp issues.
#include "core/schedule/execution/executor.h"

#include <algorithm>

#include "core/device/device_links.h"
#include "core/schedule/execution/executor_state.h"

namespace tandem {

const Event& Executor::State::done(int task, int64_t micro_batch) const {
  return graphs.launched(micro_batch) && graphs.is_captured(task) ? graphs.end(micro_batch)
                                                                  : events.done(task, micro_batch);
}

std::vector<const Event*> Executor::State::ends_of(int64_t micro_batch) const {
  std::vector<const Event*> result;
  const bool is_graph = graphs.launched(micro_batch);
  if (is_graph) result.push_back(&graphs.end(micro_batch));
  for (const int task : is_graph ? graphs.last_outside() : events.last()) {
    result.push_back(&events.done(task, micro_batch));
  }
  return result;
}

void Executor::State::fail(const std::string& text) {
  const std::lock_guard lock(failure_mutex);
  if (failure.empty()) failure = text;
  failed.store(true);
}

void Executor::State::throw_failure() {
  if (!failed.load()) return;
  const std::lock_guard lock(failure_mutex);
  throw Error(failure);
}

Timeout Executor::State::patience() const {
  return Timeout(options.watchdog_seconds, [this] {
    if (options.links != nullptr) options.links->check();
  });
}

void Executor::State::wait_one(int64_t micro_batch) {
  Timeout timeout = patience();
  const double seconds = options.watchdog_seconds;
  try {
    const std::vector<const Event*> ends = ends_of(micro_batch);
    if (std::all_of(ends.begin(), ends.end(),
                    [&](const Event* end) { return timeout.wait(*end); })) {
      return;
    }
    fail(graphs.launched(micro_batch)
             ? explain_stuck_graph(plan, graphs.split(), events, graphs.end(micro_batch),
                                   micro_batch, seconds)
             : explain_stuck(plan, events, micro_batch, seconds, options.trace));
  } catch (const Error& failure) {
    // What failed may belong to another micro-batch than the one that is waited for.
    const int64_t first = first_failed.load();
    fail(fmt::format("{}: {}", step_name(plan, first < 0 ? micro_batch : first), failure.what()));
  }
  throw_failure();
}

void Executor::State::require_issued(int64_t micro_batch) const {
  if (micro_batch <= last_issued) return;
  throw error("micro-batch {} was not issued; the last one is {}", micro_batch, last_issued);
}

void Executor::State::wait(int64_t micro_batch) {
  require_issued(micro_batch);
  if (held(micro_batch - 1)) wait_one(micro_batch - 1);
  if (held(micro_batch)) wait_one(micro_batch);
}

void Executor::State::wait_task(int64_t micro_batch, int task) {
  require_issued(micro_batch);
  if (!held(micro_batch)) return;
  try {
    if (patience().wait(done(task, micro_batch))) return;
  } catch (const Error&) {
  }
  wait(micro_batch);  // says what is wrong
}

void Executor::State::drain() {
  if (last_issued >= 0) wait(last_issued);
  throw_failure();
}

// Whether everything issued is done within the time, without asking whether it went well.
bool Executor::State::settle(double seconds) {
  Timeout timeout(seconds);
  for (const int64_t micro_batch : issued) {
    if (micro_batch < 0) continue;
    for (const Event* end : ends_of(micro_batch)) {
      try {
        if (!timeout.wait(*end)) return false;
      } catch (const Error&) {
        // The machine has failed; its works are skipped, its events still come.
      }
    }
  }
  return true;
}

Executor::Executor(const Plan& plan, const MemoryPlan& memory, const Net& net, Runtime& runtime,
                   const Kernels* kernels, const CostTable* costs, const UpdateRule& rule,
                   const ExecutorOptions& options)
    : state_(std::make_unique<State>(plan, memory, net, runtime, kernels, costs, rule, options)) {}

Executor::~Executor() {
  // After the watchdog has reported, nothing is worth waiting for much longer.
  const double patience = state_->failed.load() ? 1.0 : state_->options.watchdog_seconds;
  if (state_->settle(patience)) return;
  state_->runtime.abandon();
  static_cast<void>(state_.release());
}

void Executor::issue(int64_t micro_batch, const std::vector<External>& externals) {
  state_->issue(micro_batch, externals);
}
void Executor::wait(int64_t micro_batch) {
  state_->wait(micro_batch);
}
void Executor::drain() {
  state_->drain();
}
void Executor::wait_task(int64_t micro_batch, int task) {
  state_->wait_task(micro_batch, task);
}

std::vector<TraceEvent> Executor::trace(int64_t micro_batch) const {
  if (!state_->held(micro_batch)) {
    throw error("micro-batch {} has no trace: only the last two issued have", micro_batch);
  }
  if (state_->graphs.launched(micro_batch)) {
    throw error("micro-batch {} has no trace: it ran as one graph, whose tasks have no times",
                micro_batch);
  }
  std::vector<TraceEvent> result;
  for (int task = 0; task < static_cast<int>(state_->plan.tasks.size()); ++task) {
    const double end = state_->events.done(task, micro_batch).time();
    const double start =
        state_->options.trace ? state_->events.start(task, micro_batch).time() : end;
    result.push_back({task, micro_batch, start, end});
  }
  return result;
}

double Executor::end_time(int64_t micro_batch) const {
  if (!state_->held(micro_batch)) {
    throw error("micro-batch {} has no time: only the last two issued have", micro_batch);
  }
  double end = 0;
  for (const Event* event : state_->ends_of(micro_batch)) end = std::max(end, event->time());
  return end;
}

void Executor::trace_only(int64_t first, int64_t end) {
  state_->first_traced = first;
  state_->end_of_traced = end;
}

bool Executor::has_graphs() const {
  return state_->graphs.possible();
}

bool Executor::ran_as_graph(int64_t micro_batch) const {
  return state_->held(micro_batch) && state_->graphs.launched(micro_batch);
}

const std::string& Executor::graphs_given_up() const {
  return state_->graphs.given_up();
}

std::byte* Executor::address(const Region& region, int64_t micro_batch) const {
  return state_->lowering.address(region, micro_batch, state_->externals_of(micro_batch));
}

}  // namespace tandem
