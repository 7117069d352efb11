// Runs a plan for one micro-batch after another, on any backend. Each task is one continue_node of
// a oneTBB flow graph, built once and run again for every micro-batch: its body makes the task's
// streams wait for the events of tasks on other streams, submits the work and records the task's
// event. A graph edge means issued before; an event means done before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/net/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/execution/capture.h"
#include "core/schedule/execution/update_rule.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/plan.h"
#include "core/schedule/plan/trace.h"

namespace tandem {

class Communicator;
class DeviceLinks;
class Kernels;
class PluginGuards;
class Runtime;

struct ExecutorOptions {
  bool trace = true;  // record when tasks start, too
  // A micro-batch that takes longer is an Error that names the stuck task.
  double watchdog_seconds = 600;
  // False: copies between devices are left out, to measure what they cost.
  bool communication = true;
  // For machines whose works take the time that the costs say (sim, paced): how fast each
  // device is (empty: all as the costs say), and by how much a task, or all tasks of a device
  // together, differ from micro-batch to micro-batch: the standard deviation of a factor of mean 1
  // with a long tail to the slow side, a function of (seed, task or device, micro-batch).
  std::vector<double> speeds;
  double variation = 0, device_variation = 0;
  uint64_t variation_seed = 1;
  [[nodiscard]] bool varies() const { return variation > 0 || device_variation > 0; }
  const Communicator* ranks = nullptr;  // for a plan with messages; outlives the executor
  const DeviceLinks* links = nullptr;   // for one with messages by links; the same
  // `on` is an Error where plan or backend cannot; `automatic` runs such plans task by task.
  GraphUse graphs = GraphUse::off;
  // Not null: passes of third parties' kernels run between guards, where the host reaches the
  // devices' memory. It outlives the executor.
  PluginGuards* guards = nullptr;
};

// An external buffer's address for one micro-batch.
struct External {
  int buffer = -1;
  void* address = nullptr;
};

class Executor {
 public:
  // `kernels` may be null on a machine that never runs works (sim, paced). `costs` may be null
  // elsewhere. Everything referred to outlives the executor.
  Executor(const Plan& plan, const MemoryPlan& memory, const Net& net, Runtime& runtime,
           const Kernels* kernels, const CostTable* costs, const UpdateRule& rule,
           const ExecutorOptions& options);
  ~Executor();

  // Issues one micro-batch; a step takes the plan's micro_batches_per_step. They are issued in
  // order from any starting number. First waits until micro_batch - 2 is done.
  void issue(int64_t micro_batch, const std::vector<External>& externals);
  // Until that micro-batch (one of the last two issued) is done; throws what failed, or what is
  // stuck.
  void wait(int64_t micro_batch);
  // Everything issued.
  void drain();
  // Waits for one task of an issued micro-batch (the copy that frees a batch, say).
  void wait_task(int64_t micro_batch, int task);
  // When every task of a done micro-batch (one of the last two issued) ran. Error if it ran as a
  // graph.
  [[nodiscard]] std::vector<TraceEvent> trace(int64_t micro_batch) const;
  // When the last of its tasks was done.
  [[nodiscard]] double end_time(int64_t micro_batch) const;

  // Where tracing is on, only micro-batches [first, end) are traced from now on. Traced ones never
  // run as graphs.
  void trace_only(int64_t first, int64_t end);
  // Whether micro-batches run as captured graphs, after each micro-batch of a round has run once
  // task by task; whether one of the last two issued did.
  [[nodiscard]] bool has_graphs() const;
  [[nodiscard]] bool ran_as_graph(int64_t micro_batch) const;
  // Why GraphUse::automatic runs micro-batches task by task: a capture failed, or a kernel does not
  // support captures; "" if neither.
  [[nodiscard]] const std::string& graphs_given_up() const;
  // Where a region lies (its slot is the micro-batch's); the host's own memory for device -1 (not
  // real on sim).
  [[nodiscard]] std::byte* address(const Region& region, int64_t micro_batch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
