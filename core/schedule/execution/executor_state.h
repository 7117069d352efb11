// What an executor holds and does, for its sources alone: one issues micro-batches, the other waits
// for them.
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
#include "core/schedule/execution/lowering.h"
#include "core/schedule/execution/plan_graphs.h"
#include "core/schedule/execution/watchdog.h"

namespace tandem {

namespace flow = oneapi::tbb::flow;

constexpr int64_t in_flight = 2;  // micro-batches at once

struct Executor::State {
  State(const Plan& plan, const MemoryPlan& memory, const Net& net, Runtime& runtime,
        const Kernels* kernels, const CostTable* costs, const UpdateRule& rule,
        const ExecutorOptions& options);

  void build_graph();
  void lower_all();
  void lower(size_t task, int64_t micro_batch);
  void take_externals(int64_t micro_batch, const std::vector<External>& given);
  [[nodiscard]] std::vector<std::byte*> arenas() const;

  void issue(int64_t micro_batch, const std::vector<External>& externals);
  void issue_live(int64_t micro_batch);
  void leave_graph(int64_t micro_batch);
  void issue_graph(int64_t micro_batch);
  void issue_task(int task);
  // In a capture its waits and records are the capture's own, and only those within the
  // micro-batch.
  void issue_on_streams(int task, int64_t micro_batch, bool is_captured);
  [[nodiscard]] double varied_seconds(int task, int64_t micro_batch, double seconds) const;
  void submit(int task, const Stream& stream, Lowered& work);

  void wait(int64_t micro_batch);
  void wait_one(int64_t micro_batch);
  void wait_task(int64_t micro_batch, int task);
  [[nodiscard]] Timeout patience() const;
  void require_issued(int64_t micro_batch) const;
  void drain();
  [[nodiscard]] bool settle(double seconds);
  void fail(const std::string& text);
  void throw_failure();

  [[nodiscard]] bool takes_graph(int64_t micro_batch) const;
  // What is reached when the task is done, and what when the whole micro-batch is.
  [[nodiscard]] const Event& done(int task, int64_t micro_batch) const;
  [[nodiscard]] std::vector<const Event*> ends_of(int64_t micro_batch) const;
  [[nodiscard]] bool held(int64_t micro_batch) const {
    return micro_batch >= 0 && issued[size_t(micro_batch % in_flight)] == micro_batch;
  }
  [[nodiscard]] const std::vector<void*>& externals_of(int64_t micro_batch) const {
    return externals[size_t(micro_batch % round)];
  }

  // Micro-batches of equal form have the same works: the addresses repeat after a round, and the
  // first of a step overwrites the gradients that the others add to.
  [[nodiscard]] size_t form_of(int64_t micro_batch) const {
    const bool is_first = micro_batch % plan.micro_batches_per_step == 0;
    return size_t(micro_batch % round + (is_first ? 0 : round));
  }

  const Plan& plan;
  Runtime& runtime;
  ExecutorOptions options;
  Lowering lowering;
  TaskEvents events;
  int64_t round;
  PlanGraphs graphs;
  int64_t first_traced = 0, end_of_traced = std::numeric_limits<int64_t>::max();
  std::vector<std::vector<Dependency>> waits;  // by task
  std::vector<bool> has_external;              // by task
  bool has_first_tasks = false;                // When::micro_batch_0
  std::vector<std::vector<Lowered>> works;     // by task, then by form of the micro-batch
  std::vector<std::vector<void*>> externals;   // by micro-batch of the round, then by buffer
  std::vector<std::byte*> arenas_;             // for which `works` is ready
  std::vector<int64_t> issued = std::vector<int64_t>(in_flight, -1);  // the last ones, by parity
  int64_t last_issued = -1;

  // Hand-over between the issuing thread and the graph's threads that thread checkers see, too.
  std::atomic<int64_t> current{-1};
  std::atomic<int64_t> bodies_done{0};
  std::atomic<int64_t> first_failed{-1};  // the micro-batch of the first failing work
  std::atomic<bool> failed{false};
  std::mutex failure_mutex;
  std::string failure;

  // ThreadSanitizer does not see how oneTBB, which is not instrumented, hands tasks from thread to
  // thread. There the graph has one thread; what the streams' threads do is checked all the same. A
  // simulation runs under one lock, for which several threads would only compete.
  oneapi::tbb::task_arena arena{sanitizes_threads || runtime.machine().has_virtual_time()
                                    ? 1
                                    : oneapi::tbb::task_arena::automatic};
  std::unique_ptr<flow::graph> graph_in_arena =
      arena.execute([] { return std::make_unique<flow::graph>(); });
  flow::graph& graph = *graph_in_arena;
  flow::broadcast_node<flow::continue_msg> begin{graph};
  std::deque<flow::continue_node<flow::continue_msg>> nodes;
};

}  // namespace tandem
