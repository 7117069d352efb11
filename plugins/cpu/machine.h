// A machine of N cpu devices, with what its streams share. The devices divide the cores. Copies
// between devices can be slowed to the links of plugins/links.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <vector>

#include "plugins/cpu/clock.h"
#include "plugins/first_failure.h"
#include "plugins/links.h"

namespace tandem::cpu {

class Machine {
 public:
  // Throws Refusal for invalid options.
  explicit Machine(const tandem_machine_options& options);

  [[nodiscard]] int32_t device_count() const { return static_cast<int32_t>(threads_.size()); }
  [[nodiscard]] int32_t threads(int32_t device) const { return threads_[index(device)]; }
  [[nodiscard]] int32_t threads() const {  // of all devices together
    return std::accumulate(threads_.begin(), threads_.end(), int32_t{0});
  }
  [[nodiscard]] const tandem_machine_options& options() const { return options_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] sdk::FirstFailure& failure() { return failure_; }
  [[nodiscard]] uint32_t next_stream_number() { return stream_count_++; }

  // Throws Refusal unless the device exists.
  void require_device(int32_t device) const;
  // Reserves the links from `source` to `target` for a copy that is ready at `start`. Returns the
  // time at which the copy may end; `start` if copies are not slowed.
  [[nodiscard]] double reserve_link(int32_t source, int32_t target, int64_t bytes, double start);

 private:
  static size_t index(int32_t device) { return static_cast<size_t>(device); }

  tandem_machine_options options_;
  std::vector<int32_t> threads_;
  Clock clock_;
  sdk::FirstFailure failure_;
  std::atomic<uint32_t> stream_count_{0};
  std::mutex links_mutex_;
  timing::Links links_;
};

}  // namespace tandem::cpu
