// A task's work as what a backend runs: copies, or one function over addresses. Everything is
// resolved before a micro-batch is issued, so that issuing only hands pointers over.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/communicator.h"
#include "core/model/net/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/execution/update_rule.h"
#include "core/schedule/kernels/kernels.h"
#include "core/schedule/kernels/runtime.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

class DeviceLinks;
class GuardedPass;
class PluginGuards;
struct LayerPointers;

#if defined(__SANITIZE_THREAD__)
constexpr bool sanitizes_threads = true;
#else
constexpr bool sanitizes_threads = false;
#endif

struct Lowered {
  struct Touch {
    std::byte* address = nullptr;
    bool writes = false;
  };
  std::vector<tandem_rows> copies;
  bool copies_last = false;  // after `run`: out of where a message arrives
  std::function<tandem_status(const tandem_call&)> run;  // empty: only copies
  int32_t kind = TANDEM_WORK_COMPUTE;                    // of tandem_work
  double predicted_seconds = -1;
  // Of a layer's pass, for messages: its name, whose it is, and how many micro-batches a step of
  // training has; 0 in tests.
  const char* pass = nullptr;
  const char* owner = nullptr;
  int64_t micro_batches_per_step = 0;
  // The micro-batch it is issued for, and where the first micro-batch with a failing work is noted.
  int64_t micro_batch = -1;
  std::atomic<int64_t>* first_failed = nullptr;
  // In ThreadSanitizer builds: the first and last bytes of what the task declares, so that a
  // missing order is seen even where the work itself is code that is not instrumented.
  std::vector<Touch> touches;

  // A tandem_work's run; `context` is a Lowered.
  static tandem_status trampoline(void* context, const tandem_call* call);
};

class Lowering {
 public:
  Lowering(const Plan& plan, const MemoryPlan& memory, const Net& net, const Runtime& runtime,
           const Kernels* kernels, const CostTable* costs, const UpdateRule& rule,
           const Communicator* ranks, const DeviceLinks* links, bool communication,
           PluginGuards* guards);

  // `externals` has the address of every external buffer, by buffer.
  [[nodiscard]] std::byte* address(const Region& region, int64_t micro_batch,
                                   const std::vector<void*>& externals) const;
  // Error if the plan asks a kernel for a pass that it does not have.
  [[nodiscard]] Lowered lower(int task, int64_t micro_batch,
                              const std::vector<void*>& externals) const;

 private:
  struct Resolver;
  [[nodiscard]] bool copies_on_host(const CopyWork& work) const;
  void lower_rows(const CopyWork& work, const Resolver& at, Lowered& result) const;
  void lower_copies(const CopyWork& work, const Resolver& at, Lowered& result) const;
  void lower_layer(const Task& task, const LayerWork& work, const Resolver& at,
                   Lowered& result) const;
  [[nodiscard]] GuardedPass guarded_pass(const LayerWork& work, bool accumulates,
                                         const LayerPointers& pointers) const;
  void lower_sum(const Region& target, const std::vector<Region>& sources, const Resolver& at,
                 Lowered& result) const;
  void lower_merge(const MergeWork& work, const Resolver& at, Lowered& result) const;
  void lower_norms(const NormWork& work, const Resolver& at, Lowered& result) const;
  void lower_update(const UpdateWork& work, const Resolver& at, Lowered& result) const;
  // What all of a work's updates have in common.
  [[nodiscard]] tandem_update update_of(const UpdateWork& work, const Resolver& at) const;
  void lower_check(const CheckWork& work, const Resolver& at, Lowered& result) const;
  void lower_conversion(const ConvertWork& work, const Resolver& at, Lowered& result) const;
  using MessageFunction = decltype(tandem_transport::send);
  [[nodiscard]] int device_of(const Region& region) const;  // of a copy: TANDEM_HOST or a device
  void lower_message(const Task& task, const RankMessage& work, const Resolver& at,
                     Lowered& result) const;
  void note_touches(const Task& task, const Resolver& at, Lowered& result) const;

  const Plan& plan_;
  const MemoryPlan& memory_;
  const Net& net_;
  const Runtime& runtime_;
  const Kernels* kernels_;
  const CostTable* costs_;
  UpdateRule rule_;
  const Communicator* ranks_;
  const DeviceLinks* links_;
  bool communication_;
  PluginGuards* guards_;
  bool touches_;
};

}  // namespace tandem
