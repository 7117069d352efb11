// Plans made by hand for tests of the machinery, and the machines they run on.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/device/machine.h"
#include "core/plugin/registry.h"
#include "core/schedule/execution/executor.h"
#include "core/schedule/kernels/kernels.h"
#include "core/schedule/kernels/runtime.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/plan/plan.h"
#include "tests/support/folders.h"
#include "tests/support/message_of.h"

namespace tandem::test {

class Maker {
 public:
  explicit Maker(int devices) {
    plan.strategy = "handmade";
    plan.net = "none";
    plan.devices = devices;
    plan.batch = 8;
  }

  Region floats(const std::string& name, int device, int64_t count,
                BufferKind kind = BufferKind::transient, int slots = 1) {
    plan.buffers.push_back({name, device, kind, count * 4, slots, {}});
    return {static_cast<int>(plan.buffers.size()) - 1, 0, whole_buffer};
  }
  Region persistent(const std::string& name, int device, int64_t count, int slots = 1) {
    return floats(name, device, count, BufferKind::persistent, slots);
  }
  Region constant(const std::string& name, int device, const std::vector<float>& values) {
    const Region region = persistent(name, device, static_cast<int64_t>(values.size()));
    plan.buffers.back().initial = values;
    return region;
  }

  int task(const std::string& label, const std::vector<StreamId>& streams,
           const std::vector<Region>& reads, const std::vector<Region>& writes, Work work) {
    Task made;
    made.label = label;
    made.streams = streams;
    made.reads = reads;
    made.writes = writes;
    made.work = std::move(work);
    plan.tasks.push_back(std::move(made));
    return static_cast<int>(plan.tasks.size()) - 1;
  }
  // target += sources
  int add(const std::string& label, StreamId stream, const Region& target,
          const std::vector<Region>& sources) {
    std::vector<Region> reads = sources;
    reads.push_back(target);
    return task(label, {stream}, reads, {target}, AddWork{target, sources});
  }
  int copy(const std::string& label, const std::vector<StreamId>& streams, const Region& target,
           const Region& source) {
    return task(label, streams, {source}, {target}, CopyWork{{{source, target}}});
  }
  // A task whose order matters and whose work does not.
  int touch(const std::string& label, const std::vector<StreamId>& streams,
            const std::vector<Region>& reads, const std::vector<Region>& writes) {
    return task(label, streams, reads, writes, CopyWork{});
  }

  Plan& derived() {
    derive_dependencies(plan);
    validate(plan);
    return plan;
  }

  Plan plan;
};

inline StreamId compute(int device) {
  return {device, StreamKind::compute};
}
inline StreamId communication(int device) {
  return {device, StreamKind::communication};
}
inline StreamId copies(int device) {
  return {device, StreamKind::copy};
}

// The backends as they were built.
inline const Registry& registry() {
  static const Registry loaded = [] {
    Registry result;
    for (const char* name : {"tandem_backend_cpu.so", "tandem_backend_sim.so"}) {
      result.load(test::plugin_folder() / name);
    }
    result.load(test::test_plugin_folder() / "tandem_probe.so");
    return result;
  }();
  return loaded;
}
inline const tandem_backend& cpu() {
  return registry().backend("cpu");
}

inline DeviceSpec devices(const std::string& kind, int count) {
  DeviceSpec spec{kind, {}};
  for (int i = 0; i < count; ++i) spec.ordinals.push_back(i);
  return spec;
}

// A machine with a plan on it.
struct Rig {
  Rig(Plan plan_to_run, const tandem_backend& backend, const MachineOptions& machine_options = {},
      const ExecutorOptions& options = {}, const Net& net_of_plan = {},
      const CostTable* costs = nullptr, const UpdateRule& rule = {})
      : plan(std::move(plan_to_run)),
        net(net_of_plan),
        machine(backend, devices(backend.kind, plan.devices), machine_options),
        runtime(machine),
        memory(plan_memory(plan)) {
    runtime.reserve(plan, memory, plan.batch);
    executor =
        std::make_unique<Executor>(plan, memory, net, runtime, nullptr, costs, rule, options);
  }

  [[nodiscard]] std::vector<float> read(const std::string& name, int device, int64_t count,
                                        int64_t offset = 0) const {
    std::vector<float> values(static_cast<size_t>(count));
    runtime.read_persistent(name, device, values.data(), count * 4, offset);
    return values;
  }
  void run(int64_t steps, const std::vector<External>& externals = {}) {
    for (int64_t step = 0; step < steps; ++step) executor->issue(step, externals);
    executor->drain();
  }

  Plan plan;
  Net net;
  Machine machine;
  Runtime runtime;
  MemoryPlan memory;
  std::unique_ptr<Executor> executor;
};

}  // namespace tandem::test
