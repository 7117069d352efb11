// What a stream issues later, in order, on a thread of its own: from a message on that waits for
// another process until all that came after it is issued. So neither the thread that issues nor the
// GPU waits for other processes. A stream without messages never gets the thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tandem::cuda {

class IssueQueue {
 public:
  IssueQueue() = default;
  // After everything was issued.
  ~IssueQueue();
  IssueQueue(const IssueQueue&) = delete;
  IssueQueue& operator=(const IssueQueue&) = delete;

  // Nothing is to be issued before what comes now.
  [[nodiscard]] bool is_idle();
  // `item` throws nothing.
  void push(std::function<void()> item);
  // Waits until it is idle.
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> items_;
  bool is_busy_ = false, is_ending_ = false;
  std::thread thread_;
};

}  // namespace tandem::cuda
