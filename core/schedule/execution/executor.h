// Runs a plan, step after step, on any backend. Each task is one continue_node of a oneTBB flow
// graph, built once and re-run every step: its body makes the task's streams wait for the events of
// tasks on other streams, submits the work and records the task's event. A graph edge means issued
// before; an event means done before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device/machine.h"
#include "core/model/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/execution/capture.h"
#include "core/schedule/execution/kernel_choices.h"
#include "core/schedule/execution/update_rule.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

class Registry;

// The streams of every device of a machine (compute, communication and copy; others once a plan
// that was reserved uses them) and the memory that plans share: persistent buffers by name, and one
// transient arena per device, large enough for the largest plan. Plans of
// one Runtime never run at once.
class Runtime {
 public:
  explicit Runtime(Machine& machine);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] Machine& machine() const { return machine_; }
  [[nodiscard]] const Stream& stream(StreamId id) const;

  // Error with the forecast ("needs 9.1 GiB, 7.8 GiB free; batch 96 fits") if a device has not the
  // memory, or if a persistent buffer has another size than an earlier plan gave it. `batch` is
  // only for the forecast. May be called for several plans, while no step is in flight; a transient
  // arena may move when it grows, and what it held is lost.
  void reserve(const Plan& plan, const MemoryPlan& memory, int64_t batch);
  // Address of a persistent buffer (device -1: pinned host memory; extended ones included), or of a
  // transient one's arena. nullptr: none.
  [[nodiscard]] std::byte* persistent(const std::string& name, int device) const;
  [[nodiscard]] std::byte* transient(int device) const;

  // Copies between host memory and a persistent buffer and waits for it. Only while no step is in
  // flight. Error if there is no such buffer or the range exceeds it. A machine without real memory
  // (sim) copies nothing.
  void write_persistent(const std::string& name, int device, const void* source, int64_t bytes,
                        int64_t offset = 0);
  void read_persistent(const std::string& name, int device, void* target, int64_t bytes,
                       int64_t offset = 0) const;

  // For a work that never ends: streams and memory are left as they are when this goes, so that a
  // program can say what happened and exit instead of waiting for ever.
  void abandon();
  [[nodiscard]] bool abandoned() const { return abandoned_; }

 private:
  struct State;
  Machine& machine_;
  std::unique_ptr<State> state_;
  bool abandoned_ = false;
};

// A kernel cannot do what it is asked for, which is valid.
class Unsupported : public Error {
 public:
  using Error::Error;
};

// The kernels of a plan's bindings, prepared on the streams that will run them. Fills in the bytes
// of the plan's saved and scratch buffers.
class Kernels {
 public:
  // Error, prefixed with the layer's title and location, if a kernel is missing or refuses;
  // Unsupported if its status says so. `net` and `registry` outlive the kernels. `tuning`: which
  // algorithms they take again, and those that they measured; nullptr: they choose as they do
  // without measuring.
  Kernels(Plan& plan, const Net& net, const Registry& registry, Runtime& runtime,
          Tuning* tuning = nullptr);
  ~Kernels();
  Kernels(Kernels&&) noexcept;

  [[nodiscard]] const tandem_kernel& table(int binding) const;
  [[nodiscard]] void* handle(int binding) const;
  [[nodiscard]] const std::string& algorithm(int binding) const;
  // The first kernel whose module does not know of captures (capture.h), and the module; "" if all
  // do.
  [[nodiscard]] const std::string& unaware_of_graphs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ExecutorOptions {
  bool trace = true;              // record when tasks start, too
  double watchdog_seconds = 600;  // a step that takes longer is an Error that names the stuck task
  bool communication =
      true;  // false: copies between devices are left out, to measure what they cost
  // For machines that are told how long works take (sim, paced): how fast each device is (empty:
  // all as the costs say), and by how much tasks differ from step to step: the standard deviation
  // of a factor of mean 1 with a long tail to the slow side, a function of (seed, task, step).
  std::vector<double> speeds;
  double variation = 0;
  uint64_t variation_seed = 1;
  // `on` is an Error where plan or backend cannot; `automatic` runs such plans task by task.
  GraphUse graphs = GraphUse::off;
};

struct TraceEvent {
  int task = -1;
  int64_t step = 0;
  double start = 0, end = 0;  // seconds since the machine was opened
};

// An external buffer's address for one step.
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

  // Issues one step: one batch, of which an update takes the plan's batches_per_update. Steps are
  // issued in order from any starting number; first waits until step - 2 is done.
  void issue(int64_t step, const std::vector<External>& externals);
  // Until that step (one of the last two issued) is done; throws what failed, or what is stuck.
  void wait(int64_t step);
  // Everything issued.
  void drain();
  // Waits for one task of an issued step (the copy that frees a batch, say).
  void wait_task(int64_t step, int task);
  // When every task of a done step (one of the last two issued) ran. Error if it ran as a graph.
  [[nodiscard]] std::vector<TraceEvent> trace(int64_t step) const;
  // When the last of its tasks was done.
  [[nodiscard]] double end_time(int64_t step) const;

  // Traced steps never run as graphs: so where steps are traced at all, only [first, end) are from
  // now on.
  void trace_only(int64_t first, int64_t end);
  // Whether steps run as captured graphs, each from the second time on that its like comes up;
  // whether one of the last two issued did.
  [[nodiscard]] bool has_graphs() const;
  [[nodiscard]] bool ran_as_graph(int64_t step) const;
  // Why steps run task by task that GraphUse::automatic would have as graphs: a capture failed, or
  // a kernel does not know of captures; "" if neither.
  [[nodiscard]] const std::string& graphs_given_up() const;
  // Where a region lies (slot by step); the host's own memory for device -1 (not real on sim).
  [[nodiscard]] std::byte* address(const Region& region, int64_t step) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
