// A stream: a CUDA stream, which gets its own cuBLAS and cuDNN handles when the first kernel is
// prepared on it. Streams that only copy and add have none, since handles take memory. A work is
// run by the thread that submits it, with the stream's GPU current, and only issues kernels. After
// a message the stream's own thread runs and issues all that follows, until the message is done. A
// failed work fails the machine: from then on works and copies are skipped, but events are still
// recorded.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "plugins/cuda/capture.h"
#include "plugins/cuda/event.h"
#include "plugins/cuda/issue_queue.h"
#include "plugins/cuda/machine.h"
#include "plugins/cuda/workspace.h"

namespace tandem::cuda {

class Stream {
 public:
  // The GPU prefers kernels of streams with a higher priority. Throws Refusal. `machine` must
  // outlive the stream.
  Stream(Machine& machine, int32_t device, int32_t priority, const std::string& name);
  // Waits until everything that was issued is done.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] Machine& machine() const { return machine_; }

  // A TANDEM_WORK_HOST work (a kernel is prepared or released) runs when the stream is idle and has
  // its handles. So does a TANDEM_WORK_MESSAGE work, without handles and on the stream's thread.
  void submit(const tandem_work& work);
  // Throws Refusal for unknown devices, null memory or a negative size.
  void copy(const char* label, int32_t target_device, void* target, int32_t source_device,
            const void* source, int64_t bytes);
  // The same, also for rows that would overlap.
  void copy_rows(const char* label, const tandem_rows& rows);
  void wait(const Event& event);
  void record(Event& event);
  // See abi/backends.h. They throw Refusal.
  void begin_capture();
  [[nodiscard]] std::unique_ptr<Graph> end_capture();
  void launch(const char* label, const Graph& graph);

 private:
  // Issues now, or after the messages that the stream waits for.
  template <class Function>
  void in_order(Function&& issue) {
    if (is_idle()) return issue();
    later(std::forward<Function>(issue));
  }
  // Whether what comes now is issued at once. A capture is of one thread, so it waits until it is.
  [[nodiscard]] bool is_idle();
  void later(std::function<void()> issue);
  void run(const tandem_work& work);
  void run_message(const tandem_work& work);
  void create_handles();  // if there are none yet; throws Refusal
  void give_blas_workspace();
  void destroy() noexcept;
  // When it is its turn.
  void launch_now(const char* label, const Graph& graph);
  void delay();
  // A call to CUDA and its result.
  struct Issued {
    const char* call;
    cudaError_t error;
  };
  void require_places(int32_t target_device, const void* target, int32_t source_device,
                      const void* source, int64_t bytes) const;
  [[nodiscard]] Issued issue_copy(int32_t target_device, void* target, int32_t source_device,
                                  const void* source, int64_t bytes) const;
  [[nodiscard]] Issued issue_rows(const tandem_rows& rows) const;
  [[nodiscard]] Issued issue_each(const tandem_rows& rows) const;
  void report(const Issued& issued, const char* label);

  Machine& machine_;
  const int32_t device_;
  const int32_t ordinal_;
  const uint32_t number_;
  uint32_t delays_ = 0;
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  void* blas_workspace_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  Workspace workspace_;
  std::unique_ptr<Event> reached_;  // the message that comes next
  IssueQueue queue_;
};

}  // namespace tandem::cuda
