// Steps that run as one captured graph. Its launch stands for all captured tasks: it comes after
// the whole step before, and what waits for one of them waits for all.
#include "core/schedule/execution/executor_state.h"

namespace tandem {

namespace {

CaptureSplit wanted_split(const Plan& plan, const Machine& machine, GraphUse use) {
  CaptureSplit none;
  none.reason = "not wanted";
  if (use == GraphUse::off || (use == GraphUse::automatic && plan.devices > 1)) return none;
  if (machine.captures_graphs()) {
    CaptureSplit split = split_for_capture(plan);
    if (!split.reason.empty()) {
      split.reason =
          fmt::format("the plan of '{}' cannot be captured: {}", plan.strategy, split.reason);
    }
    none = split;
  } else {
    none.reason = fmt::format("backend '{}' captures no graphs", machine.kind());
  }
  if (use == GraphUse::on && !none.reason.empty()) {
    throw error("--graphs on: {}; leave the option out, or say --graphs off", none.reason);
  }
  return none;
}

}  // namespace

StepGraphs Executor::State::make_graphs(const Kernels* kernels) const {
  StepGraphs result(runtime.machine(), plan, wanted_split(plan, runtime.machine(), options.graphs),
                    round);
  const bool knows = kernels == nullptr || kernels->unaware_of_graphs().empty();
  if (options.graphs == GraphUse::automatic && result.possible() && !knows) {
    result.give_up(kernels->unaware_of_graphs() + "; --graphs on captures it all the same");
  }
  return result;
}

bool Executor::State::takes_graph(int64_t step) const {
  const bool is_traced = options.trace && step >= first_traced && step < end_of_traced;
  return !is_traced && graphs.is_due(step);
}

const Event& Executor::State::done(int task, int64_t step) const {
  return graphs.launched(step) && graphs.is_captured(task) ? graphs.end(step)
                                                           : events.done(task, step);
}

std::vector<const Event*> Executor::State::ends_of(int64_t step) const {
  std::vector<const Event*> result;
  const bool is_graph = graphs.launched(step);
  if (is_graph) result.push_back(&graphs.end(step));
  for (const int task : is_graph ? graphs.last_outside() : events.last()) {
    result.push_back(&events.done(task, step));
  }
  return result;
}

// Streams whose tasks were captured have seen nothing of the graph.
void Executor::State::leave_graph(int64_t step) {
  if (!held(step - 1) || !graphs.launched(step - 1)) return;
  for (const StreamId stream : graphs.joined()) {
    runtime.stream(stream).wait(graphs.end(step - 1));
  }
}

void Executor::State::issue_graph(int64_t step) {
  for (const int task : graphs.split().before) issue_task(task);
  if (failed.load()) return;
  try {
    if (graphs.of(step) || capture(step)) {
      launch(step);
    } else {
      leave_graph(step);
      for (const int task : graphs.split().captured) issue_task(task);
      graphs.note_live(step);
    }
  } catch (const std::exception& failure) {
    return fail(fmt::format("step {}: {}", step, failure.what()));
  }
  for (const int task : graphs.split().after) issue_task(task);
}

// Whether it went well. What does not is only an error where the user insists on graphs; else the
// step runs after all, and no step has failed yet.
bool Executor::State::capture(int64_t step) {
  const int64_t failed_before = failed_step.load();
  try {
    graphs.keep(step, captured(step));
    return true;
  } catch (const Error& failure) {
    if (options.graphs == GraphUse::on) {
      throw error("{} (--graphs off runs steps task by task)", failure.what());
    }
    failed_step.store(failed_before);
    graphs.give_up(failure.what());
    return false;
  }
}

Graph Executor::State::captured(int64_t step) {
  const Stream& origin = runtime.stream(graphs.launcher());
  const std::vector<StreamId>& joined = graphs.joined();
  origin.begin_capture();
  try {
    origin.record(graphs.fork());
    for (const StreamId stream : joined) runtime.stream(stream).wait(graphs.fork());
    for (const int task : graphs.split().captured) issue_on_streams(task, step, true);
    for (size_t i = 0; i < joined.size(); ++i) {
      runtime.stream(joined[i]).record(graphs.join(i));
      origin.wait(graphs.join(i));
    }
  } catch (const Error& failure) {
    // What is thrown may only follow from what the capture's end tells.
    std::string end;
    try {
      static_cast<void>(origin.end_capture());
    } catch (const Error& at_end) {
      end = at_end.what();
    }
    if (end.empty()) throw;
    throw error("{} ({})", end, failure.what());
  }
  return origin.end_capture();
}

void Executor::State::launch(int64_t step) {
  const Stream& stream = runtime.stream(graphs.launcher());
  if (held(step - 1)) {
    const bool after_graph = graphs.launched(step - 1);
    for (const int task : after_graph ? graphs.last_outside() : events.last()) {
      stream.wait(events.done(task, step - 1));
    }
  }
  for (const int task : graphs.last_before()) stream.wait(events.done(task, step));
  stream.launch("step", *graphs.of(step));
  stream.record(graphs.end(step));
  graphs.note_launched(step);
  for (const StreamId shared : graphs.shared()) runtime.stream(shared).wait(graphs.end(step));
}

}  // namespace tandem
