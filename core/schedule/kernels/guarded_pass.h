// `tandem train --check-plugins`: a pass of a third party's kernel that runs on copies of its
// memory, between guards, and fails if it writes what it must not, leaves out what it must write,
// or makes a NaN of numbers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/schedule/kernels/layer_pointers.h"

namespace tandem {

// What the guards of a run have done. Several threads add to it.
class PluginGuards {
 public:
  void add(double guard_seconds, double kernel_seconds);
  // "--check-plugins: 240 passes ran between guards, which took 31 ms beside 12 ms of their own";
  // says so if there were none.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool has_passes() const { return passes_ > 0; }

 private:
  std::atomic<int64_t> passes_{0}, guard_nanoseconds_{0}, kernel_nanoseconds_{0};
};

enum class GuardedAccess {
  hidden,   // neither read nor written: holds NaN
  read,     // must not change
  update,   // may change
  write,    // must be written wholly: holds NaN before
  fill,     // may be written: holds NaN before
  scratch,  // as fill, and lost afterwards
};

// One memory of a pass.
struct GuardedPart {
  std::string name;  // "output 0"
  void* address = nullptr;
  int64_t bytes = 0;
  int32_t dtype = 0;  // 0: no tensor
  GuardedAccess access = GuardedAccess::read;
  // If it is hidden: the array whose addresses lead to it. What the pass uses may have the same
  // address.
  std::vector<void*> LayerPointers::*hidden_in = nullptr;
};

class GuardedPass {
 public:
  // What the pass uses at one address is one memory.
  void add(GuardedPart part);
  // False if memories overlap in part: copies of them would not be the same.
  [[nodiscard]] bool is_possible() const;
  // Calls pass(...) with the addresses of guarded copies. A broken promise is explained to the
  // host, and the status is then TANDEM_FAILED.
  tandem_status run(const LayerPointers& pointers,
                    const std::function<tandem_status(const tandem_pass*)>& pass,
                    PluginGuards& guards) const;

 private:
  std::vector<GuardedPart> parts_;
};

}  // namespace tandem
