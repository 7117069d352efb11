// What plans that run on a machine share: the streams of every device (compute, communication and
// copy; others once a plan that was reserved uses them), persistent buffers by name, and one
// transient arena per device, large enough for the largest plan. Plans of one Runtime never run at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/device/machine.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

class Runtime {
 public:
  explicit Runtime(Machine& machine);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] Machine& machine() const { return machine_; }
  [[nodiscard]] const Stream& stream(StreamId id) const;

  // Error with the forecast ("needs 9.1 GiB, 7.8 GiB free; batch 96 fits") if a device lacks the
  // memory, or if a persistent buffer has another size than an earlier plan gave it. `batch` is
  // only for the forecast. May be called for several plans, while no micro-batch is in flight; a
  // transient arena may move when it grows, and what it held is lost.
  void reserve(const Plan& plan, const MemoryPlan& memory, int64_t batch);
  // Address of a persistent buffer (device -1: pinned host memory; extended ones included), or of a
  // device's arena of transient ones. nullptr: none.
  [[nodiscard]] std::byte* persistent(const std::string& name, int device) const;
  [[nodiscard]] std::byte* transient(int device) const;

  // Copy between host memory and a persistent buffer, and wait for it; `offset` and `bytes` are of
  // the buffer. Only while no micro-batch is in flight. Error if there is no such buffer or the
  // range exceeds it. A machine without real memory (sim) copies nothing.
  void write_persistent(const std::string& name, int device, const void* source, int64_t bytes,
                        int64_t offset = 0);
  void read_persistent(const std::string& name, int device, void* target, int64_t bytes,
                       int64_t offset = 0) const;

  // For a work that never ends: the destructor then leaves streams and memory as they are, so that
  // a program can report what happened and exit instead of waiting for ever.
  void abandon();
  [[nodiscard]] bool abandoned() const { return abandoned_; }

 private:
  struct State;
  Machine& machine_;
  std::unique_ptr<State> state_;
  bool abandoned_ = false;
};

}  // namespace tandem
