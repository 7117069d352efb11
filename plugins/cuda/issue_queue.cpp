#include "plugins/cuda/issue_queue.h"

#include <utility>

namespace tandem::cuda {

IssueQueue::~IssueQueue() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool IssueQueue::is_idle() {
  const std::lock_guard lock(mutex_);
  return items_.empty() && !is_busy_;
}

void IssueQueue::push(std::function<void()> item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void IssueQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return items_.empty() && !is_busy_; });
}

void IssueQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !items_.empty() || is_ending_; });
    if (items_.empty()) return;
    std::function<void()> item = std::move(items_.front());
    items_.pop_front();
    is_busy_ = true;
    lock.unlock();
    item();
    item = nullptr;  // what it holds goes before the queue is idle
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace tandem::cuda
