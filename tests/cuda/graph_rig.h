// An executor with a hand-made plan on the first of some devices.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/machines.h"
#include "tests/schedule/handmade.h"

namespace tandem::test {

inline bool runs_on_stand_in() {
  return dlsym(RTLD_DEFAULT, "tandem_fake_graph_launches") != nullptr;
}

inline const tandem_backend& cuda() {
  return all_modules().backend("cuda");
}

inline DeviceSpec first_of(const std::string& devices, int count) {
  DeviceSpec spec = parse_devices(devices, all_modules());
  spec.ordinals.resize(static_cast<size_t>(count));
  return spec;
}

struct GpuRig {
  GpuRig(const std::string& devices, Plan plan_to_run, const tandem_backend& backend_to_use,
         const ExecutorOptions& options, const MachineOptions& machine_options = {})
      : plan(std::move(plan_to_run)),
        backend(backend_to_use),
        machine(backend, first_of(devices, plan.devices), machine_options),
        runtime(machine),
        memory(plan_memory(plan)) {
    runtime.reserve(plan, memory, plan.batch);
    executor = std::make_unique<Executor>(plan, memory, net, runtime, nullptr, nullptr,
                                          UpdateRule{}, options);
  }

  Plan plan;
  tandem_backend backend;
  Net net;
  Machine machine;
  Runtime runtime;
  MemoryPlan memory;
  std::unique_ptr<Executor> executor;
};

inline ExecutorOptions with_graphs(GraphUse use) {
  ExecutorOptions options;
  options.trace = false;
  options.watchdog_seconds = 60;
  options.graphs = use;
  return options;
}

}  // namespace tandem::test
