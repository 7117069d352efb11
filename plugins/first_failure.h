// The first failure of a machine. Works fail on stream threads, long before the host synchronizes.
// The first failure is kept and reported to every thread that synchronizes later, since later
// failures follow from it.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "plugins/sdk.h"

namespace tandem::sdk {

class FirstFailure {
 public:
  [[nodiscard]] bool happened() const { return happened_.load(std::memory_order_acquire); }

  // `label` is the task's; an empty reason is replaced by the status.
  void keep(tandem_status status, const char* label, const std::string& reason) {
    keep_whole(status, text("task '", label == nullptr ? "" : label,
                            "': ", reason.empty() ? text("failed with status ", status) : reason));
  }
  // For a failure that is not that of a task.
  void keep_whole(tandem_status status, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (happened()) return;
    status_ = status;
    reason_ = reason;
    happened_.store(true, std::memory_order_release);
  }

  // TANDEM_OK, or the first failure's status, explained on this thread.
  [[nodiscard]] tandem_status report() const {
    if (!happened()) return TANDEM_OK;
    host->explain(reason_.c_str());
    return status_;
  }

  // Runs a work. Keeps its failure, if any, with the reason that it explained on this thread.
  void run(const tandem_work& work, const tandem_call& call) {
    host->explain("");
    const tandem_status status = work.run(work.context, &call);
    if (status != TANDEM_OK) keep(status, work.label, explained());
  }

 private:
  std::atomic<bool> happened_{false};
  std::mutex mutex_;
  tandem_status status_ = TANDEM_OK;  // written once, before happened_
  std::string reason_;
};

}  // namespace tandem::sdk
