#include <algorithm>
#include <chrono>

#include "core/schedule/execution/executor_state.h"

namespace tandem {

using Clock = std::chrono::steady_clock;

namespace {

// How long to wait for events in all, by time in which this process could run: one that was
// suspended (Ctrl-Z, a debugger) goes on waiting where it was.
class Patience {
 public:
  explicit Patience(double seconds) : left_(seconds) {}

  // False when the patience is used up, or if the device says that the event will never come.
  [[nodiscard]] bool wait(const Event& event) {
    do {
      const double slice = std::clamp(left_, 0.0, longest_slice);
      const auto begin = Clock::now();
      if (event.synchronize(slice)) return true;
      const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
      if (waited < slice / 2) return false;
      left_ -= std::min(waited, 2 * longest_slice);
    } while (left_ > 0);
    return false;
  }

 private:
  static constexpr double longest_slice = 1;
  double left_;
};

}  // namespace

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

void Executor::State::wait_one(int64_t step) {
  Patience patience(options.watchdog_seconds);
  try {
    for (const Event* end : ends_of(step)) {
      if (patience.wait(*end)) continue;
      throw Error(graphs.launched(step)
                      ? explain_stuck_graph(plan, graphs.split(), events, graphs.end(step), step,
                                            options.watchdog_seconds)
                      : explain_stuck(plan, events, step, options.watchdog_seconds, options.trace));
    }
  } catch (const Error& failure) {
    // What failed belongs to a step that may not be the one waited for.
    const int64_t first = failed_step.load();
    const std::string text = failure.what();
    fail(text.starts_with("step ") ? text
                                   : fmt::format("step {}: {}", first < 0 ? step : first, text));
    throw_failure();
  }
}

void Executor::State::wait(int64_t step) {
  if (step > last_step) throw error("step {} was not issued; the last one is {}", step, last_step);
  if (held(step - 1)) wait_one(step - 1);
  if (held(step)) wait_one(step);
}

void Executor::State::wait_task(int64_t step, int task) {
  if (step > last_step) throw error("step {} was not issued; the last one is {}", step, last_step);
  if (!held(step)) return;
  try {
    if (Patience(options.watchdog_seconds).wait(done(task, step))) return;
  } catch (const Error&) {
  }
  wait(step);  // says what is wrong
}

void Executor::State::drain() {
  if (last_step >= 0) wait(last_step);
  throw_failure();
}

// Whether everything issued is done within the time, without asking whether it went well.
bool Executor::State::settle(double seconds) {
  Patience patience(seconds);
  for (const int64_t step : steps) {
    if (step < 0) continue;
    for (const Event* end : ends_of(step)) {
      try {
        if (!patience.wait(*end)) return false;
      } catch (const Error&) {
        // The machine has failed; its works are skipped, its events still come.
      }
    }
  }
  return true;
}

}  // namespace tandem
