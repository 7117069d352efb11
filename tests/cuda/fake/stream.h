// The parts of the stand-in for CUDA's run-time library. A GPU's stream is a thread that executes
// one item after the other, with any delay; its memory is the host's.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::fake {

[[noreturn]] inline void give_up(const char* reason) {
  std::fprintf(stderr, "fake CUDA: %s\n", reason);
  std::abort();
}

// Of the calling thread.
extern thread_local cudaError_t last_error;
extern thread_local int current_device;
inline cudaError_t recorded(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
inline int gpu_count() {
  const char* count = std::getenv("TANDEM_FAKE_GPUS");
  return count == nullptr ? 1 : std::atoi(count);
}

// Whether all of it is memory that a GPU has allocated.
[[nodiscard]] bool is_device_memory(const void* address, size_t bytes);

class Capture;
// True if the thread is capturing, so that it may not call anything that could wait; the capture is
// then invalid.
[[nodiscard]] bool refused_in_capture();

class Stream {
 public:
  explicit Stream(int device) : device_(device), thread_([this] { run(); }) {}
  ~Stream() {
    issue(nullptr);
    thread_.join();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // The default stream waits for all others, so our code may not use it.
  static Stream& of(cudaStream_t stream) {
    if (stream == nullptr) give_up("the default stream is used");
    return *reinterpret_cast<Stream*>(stream);
  }
  [[nodiscard]] int device() const { return device_; }
  // If the stream is being captured, it becomes a node of the graph.
  cudaError_t issue(std::function<void()> body);
  [[nodiscard]] const std::shared_ptr<Capture>& capture() const { return capture_; }
  void set_capture(std::shared_ptr<Capture> capture) { capture_ = std::move(capture); }
  [[nodiscard]] bool is_idle() {
    const std::lock_guard lock(mutex_);
    return queue_.empty() && !is_busy_;
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [&] { return queue_.empty() && !is_busy_; });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      condition_.wait(lock, [&] { return !queue_.empty(); });
      const std::function<void()> body = std::move(queue_.front());
      queue_.pop_front();
      if (body == nullptr) return;
      is_busy_ = true;
      lock.unlock();
      body();
      lock.lock();
      is_busy_ = false;
      condition_.notify_all();
    }
  }

  const int device_;
  std::mutex mutex_;
  std::condition_variable condition_;
  std::deque<std::function<void()>> queue_;  // an empty function ends the thread
  bool is_busy_ = false;
  std::shared_ptr<Capture> capture_;
  std::thread thread_;  // last, since it starts in the constructor
};

// One record of an event. Recording the event again creates another one.
struct Record {
  std::mutex mutex;
  std::condition_variable condition;
  bool is_reached = false;
  double milliseconds = 0;
  // In a capture: the last nodes before it. Such a record is never reached.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;

  void wait() {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return is_reached; });
  }
};

struct Event {
  explicit Event(int device) : device(device) {}
  static Event& of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }
  [[nodiscard]] std::shared_ptr<Record> latest() {
    const std::lock_guard lock(mutex);
    return record;
  }

  const int device;
  std::mutex mutex;
  std::shared_ptr<Record> record;  // null: never recorded
};

// The effect of launching the backend's kernel with that (mangled) name; an empty function if there
// is no such kernel.
[[nodiscard]] std::function<void()> kernel_body(const char* name, unsigned blocks,
                                                void** arguments);

}  // namespace tandem::fake
