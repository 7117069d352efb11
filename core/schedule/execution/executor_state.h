// The inside of an Executor: shared by what issues steps task by task (executor.cpp), as captured
// graphs (executor_graph.cpp), and what waits for them (executor_wait.cpp).
#pragma once

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/schedule/execution/executor.h"
#include "core/schedule/execution/kernels.h"
#include "core/schedule/execution/lowering.h"
#include "core/schedule/execution/runtime.h"
#include "core/schedule/execution/step_graphs.h"
#include "core/schedule/execution/task_events.h"

namespace tandem {

namespace flow = oneapi::tbb::flow;

constexpr int64_t steps_in_flight = 2;

struct Executor::State {
  State(const Plan& plan, const MemoryPlan& memory, const Net& net, Runtime& runtime,
        const Kernels* kernels, const CostTable* costs, const UpdateRule& rule,
        const ExecutorOptions& options);

  void build_graph();
  void lower_all();
  void lower(size_t task, int64_t step);
  void take_externals(int64_t step, const std::vector<External>& given);
  [[nodiscard]] std::vector<std::byte*> arenas() const;

  void issue_live(int64_t step);
  void issue_task(int task);
  // In a capture its waits and records are the capture's own, and only those within the step.
  void issue_on_streams(int task, int64_t step, bool is_captured);
  [[nodiscard]] double varied_seconds(int task, int64_t step, double seconds) const;
  void submit(int task, const Stream& stream, Lowered& work);
  void fail(const std::string& text);
  void throw_failure();

  void issue(int64_t step, const std::vector<External>& externals);
  void wait(int64_t step);
  void wait_one(int64_t step);
  void wait_task(int64_t step, int task);
  void drain();
  [[nodiscard]] bool settle(double seconds);

  [[nodiscard]] StepGraphs make_graphs(const Kernels* kernels) const;
  [[nodiscard]] bool takes_graph(int64_t step) const;
  void leave_graph(int64_t step);
  void issue_graph(int64_t step);
  [[nodiscard]] bool capture(int64_t step);
  [[nodiscard]] Graph captured(int64_t step);
  void launch(int64_t step);
  // What is reached when the task is done, and what when the whole step is.
  [[nodiscard]] const Event& done(int task, int64_t step) const;
  [[nodiscard]] std::vector<const Event*> ends_of(int64_t step) const;

  [[nodiscard]] bool held(int64_t step) const {
    return step >= 0 && steps[static_cast<size_t>(step % steps_in_flight)] == step;
  }
  [[nodiscard]] const std::vector<void*>& externals_of(int64_t step) const {
    return externals[static_cast<size_t>(step % round)];
  }

  const Plan& plan;
  Runtime& runtime;
  ExecutorOptions options;
  Lowering lowering;
  TaskEvents events;
  int64_t round;
  StepGraphs graphs;
  int64_t first_traced = 0, end_of_traced = std::numeric_limits<int64_t>::max();
  std::vector<std::vector<Dependency>> waits;  // by task
  std::vector<bool> has_external;              // by task
  std::vector<std::vector<Lowered>> works;     // by task, then by step of the round
  std::vector<std::vector<void*>> externals;   // by step of the round, then by buffer
  std::vector<std::byte*> arenas_;             // for which `works` is ready
  std::vector<int64_t> steps =
      std::vector<int64_t>(steps_in_flight, -1);  // by parity: the step last issued
  int64_t last_step = -1;

  // Hand-over between the issuing thread and the graph's threads that thread checkers see, too.
  std::atomic<int64_t> current{-1};
  std::atomic<int64_t> bodies_done{0};
  std::atomic<int64_t> failed_step{-1};
  std::atomic<bool> failed{false};
  std::mutex failure_mutex;
  std::string failure;

  // ThreadSanitizer does not see how oneTBB, which is not instrumented, hands tasks from thread to
  // thread; there the graph has one thread, and what the streams' threads do is checked as ever.
  // A simulation runs under one lock, for which several threads would only compete.
  oneapi::tbb::task_arena arena{sanitizes_threads || runtime.machine().has(TANDEM_VIRTUAL_TIME)
                                    ? 1
                                    : oneapi::tbb::task_arena::automatic};
  std::unique_ptr<flow::graph> graph_in_arena =
      arena.execute([] { return std::make_unique<flow::graph>(); });
  flow::graph& graph = *graph_in_arena;
  flow::broadcast_node<flow::continue_msg> begin{graph};
  std::deque<flow::continue_node<flow::continue_msg>> nodes;
};

}  // namespace tandem
