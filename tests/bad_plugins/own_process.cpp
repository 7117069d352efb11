// Layers without a mistake that have parts of the process to themselves: a thread that begins when
// the module is loaded, and a handler of SIGSEGV.
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

// Runs one function at a time, in its thread.
class Worker {
 public:
  Worker() {
    std::thread([this] { serve(); }).detach();
  }
  void run(std::function<void()> work) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return work_ == nullptr; });
    bool is_done = false;
    work_ = [&] {
      work();
      is_done = true;
    };
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_done; });
  }

 private:
  void serve() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return work_ != nullptr; });
      work_();
      work_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
};
Worker& worker = *new Worker;

extern "C" void on_signal(int number) {
  std::signal(number, SIG_DFL);
}

enum class Has { Thread, Handler };

template <Has has>
struct Twice : LayerType {
  const char* name() const override {
    return has == Has::Thread ? "right.HasThread" : "right.HasHandler";
  }
  const char* help() const override { return "twice the input"; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
};

template <Has has>
class TwiceCpu {
 public:
  TwiceCpu(const Binding& binding, const Call&) : count_(count(binding.input(0).shape)) {
    static const auto before = has == Has::Handler ? std::signal(SIGSEGV, &on_signal) : SIG_DFL;
    if (before == SIG_ERR) throw std::runtime_error("no handler");
  }
  void forward(const Call&, const Pass& pass) const {
    run(pass.input(0).data(), pass.output(0).data());
  }
  void backward_data(const Call&, const Pass& pass) const {
    run(pass.output_gradient(0).data(), pass.input_gradient(0).data());
  }

 private:
  void run(const float* from, float* to) const {
    const auto work = [&] {
      for (int64_t i = 0; i < count_; ++i) to[i] = 2 * from[i];
    };
    struct sigaction now {};
    ::sigaction(SIGSEGV, nullptr, &now);
    if (has == Has::Handler && now.sa_handler != &on_signal) {
      throw std::runtime_error("its handler of SIGSEGV is gone");
    }
    if (has == Has::Thread) {
      worker.run(work);
    } else {
      work();
    }
  }
  int64_t count_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "own_process", "1.0")
      .layer<Twice<Has::Thread>>()
      .kernel<Twice<Has::Thread>, TwiceCpu<Has::Thread>>("cpu")
      .layer<Twice<Has::Handler>>()
      .kernel<Twice<Has::Handler>, TwiceCpu<Has::Handler>>("cpu")
      .table();
}
